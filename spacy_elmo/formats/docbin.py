"""Reads the docs of spaCy's .spacy files, which may be packed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.tokens import Doc, DocBin, Span

from ..errors import SOURCE_DAMAGED, CorpusError
from .text import unpacked


def docs_in(path: Path) -> Iterator[Doc]:
    """Yield the docs of a .spacy file, all of which is in memory at once. Raises CorpusError if it is damaged."""
    with unpacked(path) as file:
        data = file.read()
    try:
        # a new vocab, so that its strings are freed afterwards
        yield from DocBin().from_bytes(data).get_docs(spacy.blank("xx").vocab)
    except Exception as error:  # a damaged file fails anywhere in zlib, msgpack, numpy or spaCy
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> CorpusError:
    """Return the error that tells that a file is damaged. error: what was raised because of that."""
    reason = error if str(error) else type(error).__name__
    return CorpusError(SOURCE_DAMAGED.format(path=path, reason=reason))


def sentences_of(doc: Doc) -> list[Span]:
    """Return the sentences of a doc. A doc without sentence boundaries is one sentence."""
    return list(doc.sents) if doc.has_annotation("SENT_START") else [doc[:]]
