"""How large a text is."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ..errors import CorpusError
from ..text.stream import Fields, Report, read_sentences

if TYPE_CHECKING:
    from typing import Unpack  # of Python 3.11

MOST_WORDS = 60_000  # distinct words that are counted, more than most vocabularies have
_UNSPACED = 4.0  # tokens of a blank-separated word, from which on blanks do not separate words: English has 1.2
_SAMPLED = 1_000  # sentences that are tokenised, to know how many tokens a blank-separated word makes


class TextSize(NamedTuple):
    """How large a text is, or the part of it that was counted.

    words, repeated: distinct words, MOST_WORDS at most, and those that occur twice or more often.
    """

    sentences: int
    tokens: int
    complete: bool = True
    words: int = MOST_WORDS
    repeated: int = MOST_WORDS


def heldout_sentences(sentences: int, share: float) -> int:
    """Return how many sentences are held out: a share of them, rounded, but 1 at least and not all, or CorpusError."""
    if sentences < 2:
        raise CorpusError(
            f"paths.train has {sentences} sentence. Expected at least two, since a part is held out: give more text, "
            "or another one to hold out, paths.heldout (init-pretrain-config: --heldout)."
        )
    return min(max(1, round(sentences * share)), sentences - 1)


def count_text(
    source: str,
    language: str | None,
    enough: int,
    least: int = 0,
    report: Report | None = None,
    **fields: Unpack[Fields],
) -> TextSize:
    """Count the sentences and tokens of a text until there are `enough` tokens and `least` sentences.

    Words are counted at blanks: spaCy's tokenizer is much slower, and 1,000 sentences tell how many tokens it makes.
    report: its counts are raised, as by `read_sentences`. fields: its text_column and text_field.
    """
    ratio = 1.0 if language is None else _n_words(source, language, fields) / _n_words(source, None, fields)
    sentences = words = 0
    complete, distinct, repeated = True, set[str](), set[str]()

    def add(sentence: list[str]) -> None:
        for word in sentence:
            (repeated if word in distinct else distinct).add(word)

    for sentence in read_sentences(source, report=report, **fields):
        if words * ratio >= enough and sentences >= least:
            complete = False
            break
        sentences += 1
        words += len(sentence)
        if ratio < _UNSPACED and len(distinct) < MOST_WORDS:
            add(sentence)
    if ratio >= _UNSPACED:
        for sentence in islice(read_sentences(source, language, **fields), sentences):
            add(sentence)
            if len(distinct) >= MOST_WORDS:
                break
    numbers = (min(len(found), MOST_WORDS) for found in (distinct, repeated))
    return TextSize(sentences, round(words * ratio), complete, *numbers)


def _n_words(source: str, language: str | None, fields: Fields) -> int:
    return sum(map(len, islice(read_sentences(source, language, **fields), _SAMPLED)))
