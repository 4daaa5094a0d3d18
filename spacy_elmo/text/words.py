"""Words: how a text is split into them, and what can be none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from numbers import Real
from typing import Any

import spacy
from spacy.language import Language

from ..errors import CorpusError, ElmoError, shown
from ..formats.characters import checked_words as strings_of
from .files import LONGEST_LINE

Offsets = list[tuple[int, int]]


class Unusable(Exception):
    """Raised for a line that can't be used, with the reason."""


def decode_line(line: bytes | None, number: int) -> str:
    """Return the text of a line that `lines_of` yields, without a byte order mark in the first. Raises Unusable."""
    if line is None:
        raise Unusable(f"more than {LONGEST_LINE:,} bytes")
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError as error:
        raise Unusable(f"not UTF-8 ({error.reason} at byte {error.start:,})") from error
    return without_nul(text.removeprefix("\ufeff") if number == 1 else text)


def checked_words(words: Iterable[Any]) -> list[str]:
    """Return words without those that are empty or blank, which are none. Raises Unusable if one is no text."""
    try:
        kept = [word for word in strings_of(words) if word.strip()]
    except ElmoError as error:
        raise Unusable(str(error).rstrip(".")) from error
    encodable(without_nul(" ".join(kept)))
    return kept


def is_missing(value: object) -> bool:
    """Return whether a value stands for none: null of JSON, or what tables have in empty cells, pandas' too."""
    is_nan = isinstance(value, Real) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def words_of(value: Any, split: Callable[[str], list[str]]) -> list[str]:
    """Return the words of a text or of a list of words; none if it is missing. Raises Unusable if it is neither."""
    if is_missing(value):
        return []
    if isinstance(value, str):
        return split(without_nul(encodable(value)))
    try:
        if not isinstance(value, bytes | bytearray | Mapping):
            return checked_words(value)
    except TypeError:  # it can't be iterated
        pass
    raise Unusable(f"{shown(value)}, which is not a text or a list of words")


def line_of(words: Iterable[str]) -> str:
    """Return words separated by blanks. Blanks inside of a word are written as U+2423, so that it stays one word."""
    return " ".join("\u2423".join(word.split()) for word in words)


def without_nul(text: str) -> str:
    """Return a text. Raises Unusable if it has a NUL character."""
    if "\0" in text:
        raise Unusable("a NUL character")
    return text


def encodable(text: str) -> str:
    """Return a text. Raises Unusable if it can't be written as UTF-8."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise Unusable("half a surrogate pair, which is no character") from error
    return text


RENEWED_AFTER = 20_000_000  # characters after which the tokenizer is replaced by a new one
_LONGEST = 1_000_000  # characters: nlp.max_length, which the tokenizer by itself does not check


@lru_cache(maxsize=2)  # English's tokenizer takes 75 ms to make
def tokenizer_of(language: str | None) -> Tokenize | None:
    """Return spaCy's tokenizer of a language; None for None: texts are split at blanks then."""
    return None if language is None else Tokenize(partial(blank, language))


class Tokenize:
    """Splits text with the tokenizer of a pipeline that `load` makes, without whitespace tokens."""

    def __init__(self, load: Callable[[], Language]) -> None:
        self._load = load
        self._nlp, self._read = load(), 0

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text. Raises Unusable if it can't be tokenised."""
        if len(text) > _LONGEST:
            raise Unusable(f"more than {_LONGEST:,} characters to be tokenised")
        self._read += len(text)
        if self._read > RENEWED_AFTER:
            self._nlp, self._read = self._load(), len(text)
        # spaCy refuses subclasses of str, such as those that numpy has
        return [token.text for token in self._nlp.tokenizer(str(encodable(text))) if not token.is_space]


def blank(language: str) -> Language:
    """Return an empty pipeline of a language. Raises CorpusError if spaCy does not know it, or its tokenizer fails."""
    try:
        return spacy.blank(language)
    except (ImportError, ValueError, AttributeError) as error:  # AttributeError: of other modules in spacy.lang
        if isinstance(error, ImportError) and "E048" not in str(error):  # E048: no such language
            raise CorpusError(
                f"spaCy's tokenizer for the language {shown(language)} needs a package that is not installed "
                f"({error}). Install it, or leave the language out and separate the words by blanks."
            ) from error
        raise CorpusError(
            f"the language is {shown(language)}, which can't be used ({error}). Expected the code of a language that "
            "spaCy knows, like en or xx; or none if the words are separated by blanks already."
        ) from error
