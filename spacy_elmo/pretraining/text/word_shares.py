"""Shares of a text's words that are longer than a biLM reads, or that are not in its vocabulary.

At most 10,000 sentences are looked at, at equal distances.
"""

from ...formats.truncated import too_long
from .prepared import PreparedCorpus
from .vocabulary import Vocabulary
from .vocabulary_file import UNKNOWN

SENTENCES = 10_000  # that are looked at


def cut_share(corpus: PreparedCorpus, max_characters: int) -> float:
    """Return the share of a text's words that have more than `max_characters` - 2 bytes of UTF-8.

    corpus: the text.
    max_characters: positions per word of the biLM.

    Raises CorpusError if the text is damaged.
    """
    words = _words_of(corpus)
    return len(too_long(words, max_characters)) / len(words)


def unknown_share(corpus: PreparedCorpus, vocabulary: Vocabulary) -> float:
    """Return the share of a text's words that are not in a vocabulary.

    corpus: the text.
    vocabulary: words that the biLM predicts.

    Raises CorpusError if the text is damaged.
    """
    return float((vocabulary.ids(_words_of(corpus)) == UNKNOWN).mean())


def _words_of(corpus: PreparedCorpus) -> list[str]:
    distance = -(-len(corpus) // SENTENCES)
    return [word for number in range(0, len(corpus), distance) for word in corpus.sentence(number)]
