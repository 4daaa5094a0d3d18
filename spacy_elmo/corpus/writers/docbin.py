"""spaCy's DocBin: a doc a document, with its vectors where the elmo pipe puts them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ...pipeline.attributes import annotate
from ...pipeline.storage import TOKENS, VECTORS, key, tokens_of
from ..documents import Document
from .writer import Array, Shape, VectorFile

ATTR = "elmo"


class DocBinFile(VectorFile):
    """Writes a .spacy file. All of its docs are in memory until the end.

    Their `doc.user_data` has "source", "line", "id" and "meta", and what `doc._.elmo` reads: the layers, or the vectors
    that were made of them.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        super().__init__(path, shape)
        self._vocab = Vocab()
        self._docs = DocBin(store_user_data=True)

    def open(self, temporary: Path) -> None:
        """Set the path to write to. temporary: that path."""
        self._file = temporary

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Add the doc of a document. document, vectors: as in VectorFile."""
        words = [word for sentence in document.sentences for word in sentence.tokens]
        starts: list[bool | int | None] = [
            i == 0 for sentence in document.sentences for i in range(len(sentence.tokens))
        ]
        doc = Doc(self._vocab, words=words, spaces=_spaces(document), sent_starts=starts)
        user_data: Any = doc.user_data  # spaCy's type stub expects strings
        user_data |= {"source": document.source, "line": document.line, "id": document.id, "meta": document.meta}
        array: Any = np.concatenate(vectors, axis=-2)
        selection = self.shape.selection
        if selection.name == "all":
            mean = np.full(self.shape.n_layers, 1 / self.shape.n_layers, np.float32)
            annotate(doc, ATTR, array, mean, "layers")
        else:
            user_data[key(ATTR, TOKENS)], user_data[key(ATTR, VECTORS)] = tokens_of(doc), array
        self._docs.add(doc)

    def close(self) -> None:
        """Write the docs."""
        self._file.write_bytes(self._docs.to_bytes())


def _spaces(document: Document) -> list[bool] | None:
    """Return whether a blank follows each word; None if the text is not known."""
    places = [place for sentence in document.sentences for place in sentence.offsets or []]
    if len(places) != document.tokens:
        return None
    return [after[0] > before[1] for before, after in pairwise(places)] + [False]
