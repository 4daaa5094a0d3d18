"""Text to words: at blanks, or by a spaCy language's tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable

import spacy
from spacy.language import Language

from ...errors import CorpusError, Errors, shown

Splitter = Callable[[str], list[str]]

RENEWED_AFTER = 20_000_000  # characters
_MARKS = re.compile(r"[^\w\s]{1000}")
_LONGEST = 1_000_000  # characters: nlp.max_length, which the tokenizer by itself does not check


class Unusable(Exception):
    """Why a line can't be used."""


class Tokenizer:
    """Splits text with a spaCy language's tokenizer; whitespace tokens are left out.

    It keeps every word that it has met: so it is made anew now and then, and memory does not grow with the text.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._nlp, self._read = _blank(language), 0

    def __call__(self, text: str) -> list[str]:
        """Raises Unusable for text that would take the tokenizer very long."""
        if len(text) > _LONGEST:
            raise Unusable(f"more than {_LONGEST:,} characters to be tokenised")
        if _MARKS.search(text):  # the time grows with the square of their number
            raise Unusable("1,000 punctuation marks without a blank or letter between them")
        self._read += len(text)
        if self._read > RENEWED_AFTER:
            self._nlp, self._read = _blank(self.language), len(text)
        return [word for token in self._nlp.tokenizer(text) for word in token.text.split()]


def splitter(language: str | None) -> Splitter:
    """str.split, or a language's tokenizer. Raises CorpusError for a language that spaCy does not know."""
    return str.split if language is None else Tokenizer(language)


def _blank(language: str) -> Language:
    try:
        return spacy.blank(language)
    except (ImportError, ValueError, AttributeError) as error:  # the last: a module of spacy.lang that is no language
        raise CorpusError(Errors.SOURCE_LANGUAGE.format(got=shown(language), reason=error)) from error
