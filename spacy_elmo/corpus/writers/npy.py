"""numpy's .npy: one array with a vector a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..documents import Document
from .writer import Array, Shape, VectorFile


class NpyFile(VectorFile):
    """Writes an .npy file: *Shape:* (sentences, width), or (sentences, layers, width).

    All is in memory until the end.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        super().__init__(path, shape)
        layers = (shape.n_layers,) if shape.selection.name == "all" else ()
        self._vectors: list[Array] = []
        self._empty = np.zeros((0, *layers, shape.width), shape.selection.dtype)

    def open(self, temporary: Path) -> None:
        """Set the path to write to. temporary: that path."""
        self._file = temporary

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Add the vectors of a document. document, vectors: as in VectorFile."""
        self._vectors += vectors

    def close(self) -> None:
        """Write the array."""
        with self._file.open("wb") as file:
            np.save(file, np.stack(self._vectors) if self._vectors else self._empty, allow_pickle=False)
