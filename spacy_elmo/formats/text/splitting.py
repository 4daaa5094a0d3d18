"""Splits text into words: at blanks, or with the tokenizer of a spaCy language."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from ...errors import CorpusError, Errors, shown
from .lines import Unusable
from .tokenizer_limit import TokenizerLimit, may_be_slow

Splitter = Callable[[str], list[str]]
Offsets = list[tuple[int, int]]

RENEWED_AFTER = 20_000_000  # characters after which the tokenizer is replaced by a new one
# what spacy.blank raises if it can't make a pipeline; AttributeError: a module of spacy.lang that is not a language
LANGUAGE_ERRORS = (ImportError, ValueError, AttributeError)
_WORD = re.compile(r"\S+")
_LONGEST = 1_000_000  # characters: nlp.max_length, which the tokenizer by itself does not check


class Tokenizer:
    """Splits text with a spaCy tokenizer. Whitespace tokens are left out.

    spaCy's tokenizer stores every word it has seen. It is therefore replaced by a new one from time to time, so that
    memory does not grow with the text.

    load: returns a new pipeline, whose tokenizer is used. Its errors are raised here.
    """

    def __init__(self, load: Callable[[], Language]) -> None:
        self._load = load
        self._nlp, self._read = load(), 0
        self._limit: TokenizerLimit | None = None

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text. Raises Unusable if it can't be tokenised, or not in reasonable time."""
        return [word for token in self._tokens(text) for word in token.text.split()]

    def words_and_offsets(self, text: str) -> tuple[list[str], Offsets]:
        """Return the words of a text, and the places of each in it: of its first character, and after its last one.

        Raises Unusable if it can't be tokenised, or not in reasonable time.
        """
        words, offsets = [], []
        for token in self._tokens(text):
            for match in _WORD.finditer(token.text):
                words.append(match[0])
                offsets.append((token.idx + match.start(), token.idx + match.end()))
        return words, offsets

    def _tokens(self, text: str) -> Doc:
        if len(text) > _LONGEST:
            raise Unusable(f"more than {_LONGEST:,} characters to be tokenised")
        self._read += len(text)
        if self._read > RENEWED_AFTER:
            self._nlp, self._read, self._limit = self._load(), len(text), None
        self._bound_time_of(text)
        try:
            return self._nlp.tokenizer(str(text))  # spaCy refuses subclasses of str, such as those that numpy has
        except UnicodeEncodeError as error:
            raise Unusable("half of a surrogate pair, which UTF-8 can't represent") from error

    def _bound_time_of(self, text: str) -> None:
        """Set what the tokenizer may read. It depends on the text alone, not on what was read before."""
        tokenizer, language = self._nlp.tokenizer, str(self._nlp.lang)
        slow = isinstance(tokenizer, spacy.tokenizer.Tokenizer) and may_be_slow(text, language)
        if slow and self._limit is None:
            self._limit = TokenizerLimit(tokenizer, language)  # takes half a second, and most texts don't need it
        if self._limit is not None:
            self._limit.allow(text if slow else None)


def splitter(language: str | None) -> Splitter:
    """Return a function that splits a text into words.

    language: of the spaCy tokenizer; None: str.split.

    Raises CorpusError if spaCy does not know the language.
    """
    return str.split if language is None else Tokenizer(partial(blank, language))


def words_at_blanks(text: str) -> tuple[list[str], Offsets]:
    """Return the words of a text whose words are separated by blanks, and their places, as `words_and_offsets` does."""
    words = text.split()
    offsets, end = [], 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        offsets.append((start, end))
    return words, offsets


def blank(language: str) -> Language:
    """Return an empty pipeline of a language. Raises CorpusError if spaCy does not know it, or its tokenizer fails."""
    try:
        return spacy.blank(language)
    except LANGUAGE_ERRORS as error:
        template = Errors.SOURCE_TOKENIZER if lacks_package(error) else Errors.SOURCE_LANGUAGE
        raise CorpusError(template.format(got=shown(language), reason=error)) from error


def lacks_package(error: Exception) -> bool:
    """Whether spaCy knows a language, but its tokenizer needs a package that is not installed.

    error: one of LANGUAGE_ERRORS, raised by `spacy.blank`.
    """
    return isinstance(error, ImportError) and "E048" not in str(error)  # E048: no such language
