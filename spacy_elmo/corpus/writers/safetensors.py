"""safetensors: the vectors of all tokens in one tensor, and where each sentence ends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Errors, VectorsError
from ..documents import Document
from .writer import Array, Shape, VectorFile, required

MOST_BYTES = 99_000_000  # of the sentences: the library takes no header of more than 100 MB, tensors included


class SafetensorsFile(VectorFile):
    """Writes a .safetensors file. All of its vectors are in memory until the end.

    Its tensors: those of the vectors (see `Selection.columns`), *Shape:* (tokens, width), and "ends",
    *Shape:* (sentences,), int64, the number of tokens up to the end of each sentence. With one vector a sentence,
    the vectors are of *Shape:* (sentences, width). The metadata "sentences" is a JSON list with an object a sentence:
    id, source, line, sentence and tokens.

    Raises VectorsError if the sentences are too many for the metadata.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        super().__init__(path, shape)
        self._library: Any = required("safetensors.numpy", "safetensors")
        self._names = shape.selection.columns(shape.n_layers)
        self._vectors: dict[str, list[Array]] = {name: [] for name in self._names}
        self._sentences: list[str] = []
        self._ends: list[int] = []
        self._bytes = 0

    @staticmethod
    def check_packages() -> None:
        """Raise VectorsError if safetensors is missing."""
        required("safetensors.numpy", "safetensors")

    def open(self, temporary: Path) -> None:
        """Set the path to write to. temporary: that path."""
        self._file = temporary

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Add the vectors of a document. document, vectors: as in VectorFile."""
        for number, (sentence, array) in enumerate(zip(document.sentences, vectors)):
            place = {"id": document.id, "source": document.source, "line": document.line, "sentence": number}
            facts = json.dumps({**place, "tokens": sentence.tokens})
            self._bytes += len(json.dumps(facts))  # the header has the JSON as a string, in which quotes are escaped
            if self._bytes > MOST_BYTES:
                raise VectorsError(Errors.CORPUS_SAFETENSORS.format(path=self.path, n=len(self._sentences)))
            self._sentences.append(facts)
            self._ends.append(len(sentence.tokens))
            for name, part in zip(self._names, self.shape.selection.by_column(array)):
                self._vectors[name].append(part[None] if part.ndim == 1 else part)

    def close(self) -> None:
        """Write the file."""
        empty = np.zeros((0, self.shape.width), self.shape.selection.dtype)
        tensors = {name: np.concatenate([empty, *arrays]) for name, arrays in self._vectors.items()}
        tensors["ends"] = np.cumsum(self._ends, dtype=np.int64)
        self._file.write_bytes(self._library.save(tensors, {"sentences": f"[{', '.join(self._sentences)}]"}))
