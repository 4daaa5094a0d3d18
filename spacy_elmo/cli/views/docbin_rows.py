"""The rows that `elmo info` prints for a .spacy file."""

from pathlib import Path

import numpy as np
from spacy.tokens import Doc

from ...formats.text.docbin import docs_in
from ...pipeline.storage import LAYERS, TOKENS, VECTORS, key
from .info_rows import Rows


def docbin_rows(path: Path) -> Rows:
    """Return the numbers of docs and tokens of a .spacy file, and what ELMo vectors its docs have.

    path: the file. All of it is in memory at once.

    Raises CorpusError if it is damaged, or unpacks to more than docs would.
    """
    docs = tokens = embedded = 0
    kinds: dict[str, None] = {}  # in order, each once
    for doc in docs_in(path, annotated=True):
        found = _vectors_on(doc)
        docs, tokens, embedded = docs + 1, tokens + len(doc), embedded + bool(found)
        kinds |= dict.fromkeys(found)
    told = "; ".join(kinds) or "none"
    some = f", on {embedded:,} of the docs" if 0 < embedded < docs else ""
    return [("docs", f"{docs:,}"), ("tokens", f"{tokens:,}"), ("ELMo vectors", told + some)]


def _vectors_on(doc: Doc) -> list[str]:
    """Return what a doc has under each attr, with the sizes of the array."""
    names = [name for name in map(_name, doc.user_data) if name is not None and name.endswith(TOKENS)]
    told = []
    for attr in (name.removesuffix(TOKENS) for name in names):
        for suffix, dimensions in ((LAYERS, 3), (VECTORS, 2)):
            array: object = doc.user_data.get(key(attr, suffix))
            if isinstance(array, np.ndarray) and array.ndim == dimensions:  # the file may be damaged
                layers = f"{array.shape[0]:,} layers of " if dimensions == 3 else "width "
                told.append(f"doc._.{attr}{suffix}, {layers}{array.shape[-1]:,}, {array.dtype}")
    return told


def _name(found: object) -> str | None:
    """Return the name in spaCy's key of an extension value; None for other keys."""
    if isinstance(found, tuple) and len(found) == 4 and found[0] == "._." and isinstance(found[1], str):
        return found[1]
    return None
