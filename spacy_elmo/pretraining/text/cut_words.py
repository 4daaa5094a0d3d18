"""How many words of a text are longer than a biLM reads."""

from ...formats.truncated import too_long
from .prepared import PreparedCorpus

SENTENCES = 10_000  # that are looked at


def cut_share(corpus: PreparedCorpus, max_characters: int) -> float:
    """Return the share of a text's words that have more than `max_characters` - 2 bytes of UTF-8.

    At most 10,000 sentences are looked at, at equal distances.

    corpus: the text.
    max_characters: positions per word of the biLM.

    Raises CorpusError if the text is damaged.
    """
    distance = -(-len(corpus) // SENTENCES)
    words = [word for number in range(0, len(corpus), distance) for word in corpus.sentence(number)]
    return len(too_long(words, max_characters)) / len(words)
