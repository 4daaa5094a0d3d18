"""Multiplications and additions of the biLM's products, and the tokens a second that a rate of them allows."""

from spacy_elmo.formats import BiLMOptions


def lstm_flop(options: BiLMOptions) -> int:
    """Of a token, in all layers of both directions: the gates' sums of input and state, and the projection."""
    cell = 2 * options.projection_dim * 4 * options.dim
    if options.has_lstm_projection:
        cell += options.dim * options.projection_dim
    return 2 * 2 * options.n_layers * cell


def encoder_flop(options: BiLMOptions) -> int:
    """Of a distinct word: convolutions at all places of max_characters positions, highways, projection."""
    convolutions = sum(
        (options.max_characters - width + 1) * width * options.char_dim * n for width, n in options.filters
    )
    dense = 2 * options.n_highway * options.n_filters**2
    if options.has_char_projection:
        dense += options.n_filters * options.projection_dim
    return 2 * (convolutions + dense)


def product_limit(options: BiLMOptions, tokens: int, distinct: int, rate: float) -> float:
    """Tokens a second if a batch's products, and nothing else, ran at this rate, FLOP a second.

    distinct: of its words; each is encoded once.
    """
    return tokens * rate / (tokens * lstm_flop(options) + distinct * encoder_flop(options))
