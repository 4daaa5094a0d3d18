"""Counts the sentences and words of a text quickly."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from .reading import read_sentences

MOST_WORDS = 60_000  # distinct words that are counted, more than most vocabularies have
_UNSPACED = 4.0  # tokens of a blank-separated word, from which on blanks do not separate words: English has 1.2
_SAMPLED = 1_000  # sentences that are tokenised, to know how many tokens a blank-separated word makes


class TextSize(NamedTuple):
    """How large a text is.

    sentences, tokens: their numbers; those that were counted, if the count ended early.
    complete: whether all of the text was counted.
    words: number of distinct words among those that were counted, MOST_WORDS if there are more. They are separated by
        blanks if most words of the text are; with punctuation they are more than the tokenizer's.
    repeated: number of those that occur twice or more often.
    """

    sentences: int
    tokens: int
    complete: bool = True
    words: int = MOST_WORDS
    repeated: int = MOST_WORDS


def heldout_sentences(sentences: int, share: float) -> int:
    """Return how many sentences of a text are held out: a share of them, rounded, but 1 at least and not all.

    sentences: of the text, 2 or more.
    share: between 0 and 1.
    """
    return min(max(1, round(sentences * share)), sentences - 1)


def count_text(source: str, language: str | None, enough: int, least: int = 0) -> TextSize:
    """Count the sentences and tokens of a text while it is read.

    Words are counted at blanks, because spaCy's tokenizer is much slower. The first 1,000 sentences tell how many
    tokens it makes of them.

    source: a file, a folder or a pattern; see `read_sentences`.
    language: of the spaCy tokenizer; None: words are separated by blanks.
    enough: number of tokens at which the count ends.
    least: number of sentences that are counted in any case, if there are so many.

    Raises CorpusError if the text can't be read.
    """
    ratio = 1.0 if language is None else _words(source, language) / _words(source, None)
    sentences = words = 0
    spaced, complete, distinct = ratio < _UNSPACED, True, _Distinct()
    for sentence in read_sentences(source):
        if words * ratio >= enough and sentences >= least:
            complete = False
            break
        sentences += 1
        words += len(sentence)
        if spaced and len(distinct.words) < MOST_WORDS:
            distinct.add(sentence)
    if not spaced:
        for sentence in islice(read_sentences(source, language), sentences):
            distinct.add(sentence)
            if len(distinct.words) >= MOST_WORDS:
                break
    numbers = (min(len(found), MOST_WORDS) for found in (distinct.words, distinct.repeated))
    return TextSize(sentences, round(words * ratio), complete, *numbers)


class _Distinct:
    """The distinct words of sentences, and those among them that came twice or more often."""

    def __init__(self) -> None:
        self.words, self.repeated = set[str](), set[str]()

    def add(self, sentence: Sequence[str]) -> None:
        for word in sentence:
            (self.repeated if word in self.words else self.words).add(word)


def _words(source: str, language: str | None) -> int:
    return sum(map(len, islice(read_sentences(source, language), _SAMPLED)))
