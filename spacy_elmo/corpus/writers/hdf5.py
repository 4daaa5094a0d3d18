"""HDF5 in AllenNLP's layout: a dataset a sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...formats.hdf5_vectors import VectorsWriter
from ..documents import Document
from .writer import Array, VectorFile


class Hdf5File(VectorFile):
    """Writes an HDF5 file. The datasets are named "0", "1" ... in each file."""

    _writer: VectorsWriter | None = None

    def open(self, temporary: Path) -> None:
        """Begin to write. temporary: the path to write to."""
        self._writer = VectorsWriter(temporary, named=self.path).__enter__()

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Write the datasets of a document. document, vectors: as in VectorFile."""
        assert self._writer is not None
        for sentence, array in zip(document.sentences, vectors):
            self._writer.write(" ".join(sentence.tokens), array)

    def close(self) -> None:
        """Write what is left, and close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__(None, None, None)

    def abandon(self) -> None:
        """Close the file, which is incomplete."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__(*(sys.exc_info() if sys.exc_info()[1] else (OSError, OSError(), None)))
