"""Operations of the biLM's matrix multiplications, and the tokens a second that a rate of them allows."""

from spacy_elmo.formats import BiLMOptions


def lstm_flop(options: BiLMOptions) -> int:
    """Count multiplications and additions of a token, in all layers of both directions.

    options: sizes of the network. Counted are the gates' sums of input and state, and the projections.
    """
    cell = 2 * options.projection_dim * 4 * options.dim
    if options.has_lstm_projection:
        cell += options.dim * options.projection_dim
    return 2 * 2 * options.n_layers * cell


def encoder_flop(options: BiLMOptions) -> int:
    """Count multiplications and additions of a distinct word in the character encoder.

    options: sizes of the network. Counted are convolutions at all of max_characters positions, highways, projection.
    """
    convolutions = sum(
        (options.max_characters - width + 1) * width * options.char_dim * n for width, n in options.filters
    )
    dense = 2 * options.n_highway * options.n_filters**2
    if options.has_char_projection:
        dense += options.n_filters * options.projection_dim
    return 2 * (convolutions + dense)


def tokens_at_rate(options: BiLMOptions, tokens: int, distinct: int, rate: float) -> float:
    """Compute tokens a second if a batch's matrix multiplications, and nothing else, ran at a rate.

    options: sizes of the network. tokens: of the batch. distinct: distinct words, each is encoded once.
    rate: FLOP a second.
    """
    return tokens * rate / (tokens * lstm_flop(options) + distinct * encoder_flop(options))
