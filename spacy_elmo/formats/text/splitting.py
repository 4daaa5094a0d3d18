"""Splits text into words: at blanks, or with the tokenizer of a spaCy language."""

from __future__ import annotations

import re
from collections.abc import Callable

import spacy
from spacy.language import Language

from ...errors import CorpusError, Errors, shown
from .lines import Unusable

Splitter = Callable[[str], list[str]]

RENEWED_AFTER = 20_000_000  # characters after which the tokenizer is replaced by a new one
_MARKS = re.compile(r"[^\w\s]{1000}")
_LONGEST = 1_000_000  # characters: nlp.max_length, which the tokenizer by itself does not check


class Tokenizer:
    """Splits text with the tokenizer of a spaCy language. Whitespace tokens are left out.

    spaCy's tokenizer stores every word it has seen. It is therefore replaced by a new one from time to time, so that
    memory does not grow with the text.

    language: its code, like "en".

    Raises CorpusError if spaCy does not know the language.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._nlp, self._read = _blank(language), 0

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text. Raises Unusable if the tokenizer would need very long for it."""
        if len(text) > _LONGEST:
            raise Unusable(f"more than {_LONGEST:,} characters to be tokenised")
        if _MARKS.search(text):  # the tokenizer's time grows with the square of their number
            raise Unusable("1,000 punctuation marks without a blank or letter between them")
        self._read += len(text)
        if self._read > RENEWED_AFTER:
            self._nlp, self._read = _blank(self.language), len(text)
        return [word for token in self._nlp.tokenizer(text) for word in token.text.split()]


def splitter(language: str | None) -> Splitter:
    """Return a function that splits a text into words.

    language: of the spaCy tokenizer; None: str.split.

    Raises CorpusError if spaCy does not know the language.
    """
    return str.split if language is None else Tokenizer(language)


def _blank(language: str) -> Language:
    try:
        return spacy.blank(language)
    except (
        ImportError,
        ValueError,
        AttributeError,
    ) as error:  # AttributeError: a module of spacy.lang that is not a language
        raise CorpusError(Errors.SOURCE_LANGUAGE.format(got=shown(language), reason=error)) from error
