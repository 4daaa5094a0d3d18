"""Parquet: a row a sentence, its vectors as lists of fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..documents import Document
from .writer import Array, Shape, VectorFile, required

ROW_GROUP_BYTES = 64 << 20  # of vectors
_PLACES = ("id", "source", "line", "sentence", "text", "meta")


class ParquetFile(VectorFile):
    """Writes a Parquet file.

    Its columns: id, source, line, sentence (its number in the document, from 0), text, tokens, starts and ends (the
    places of each token in the document's text), meta (JSON), and those of the vectors (see `Selection.columns`).
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        super().__init__(path, shape)
        self._arrow: Any = required("pyarrow", "parquet")
        self._parquet: Any = required("pyarrow.parquet", "parquet")
        self._names = shape.selection.columns(shape.n_layers)
        self._writer: Any = None
        self._file: IO[bytes] | None = None
        self._clear()

    def _clear(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._tokens: list[list[str]] = []
        self._places: list[list[tuple[int, int]] | None] = []
        self._vectors: dict[str, list[Array]] = {name: [] for name in self._names}
        self._bytes = 0

    @staticmethod
    def check_packages() -> None:
        """Raise VectorsError if pyarrow is missing."""
        required("pyarrow.parquet", "parquet")

    def open(self, temporary: Path) -> None:
        """Begin to write. temporary: the path to write to."""
        schema = self._schema()
        listed = ("tokens.list.element", "starts.list.element", "ends.list.element")
        depth = ".list.element" if self.shape.selection.sentence else ".list.element.list.element"
        packed = dict.fromkeys((*_PLACES, *listed), "zstd")
        # vectors hardly pack, and no value is there twice
        plain = dict.fromkeys((name + depth for name in self._names), "none")
        self._file = temporary.open("wb")  # pyarrow takes no name that is not UTF-8
        self._writer = self._parquet.ParquetWriter(
            self._file,
            schema,
            compression=packed | plain,
            use_dictionary=["source", "tokens.list.element"],
            write_statistics=["id", "source", "line"],
        )

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Write the rows of a document. document, vectors: as in VectorFile."""
        for number, (sentence, array) in enumerate(zip(document.sentences, vectors)):
            text = None
            if document.text is not None and sentence.offsets:
                text = document.text[sentence.offsets[0][0] : sentence.offsets[-1][1]]
            self._rows.append((document.id, document.source, document.line, number, text, document.meta))
            self._tokens.append(sentence.tokens)
            self._places.append(sentence.offsets)
            for name, part in zip(self._names, self.shape.selection.by_column(array)):
                self._vectors[name].append(part)
            self._bytes += array.nbytes
            if self._bytes >= ROW_GROUP_BYTES:
                self._flush()

    def close(self) -> None:
        """Write what is left, and close the file."""
        self._flush()
        self._writer.close()
        self._writer = None
        if self._file is not None:
            self._file.close()

    def abandon(self) -> None:
        """Close the file, which is incomplete."""
        writer, self._writer = self._writer, None
        with suppress(OSError):  # the disk may be full; the file is deleted anyway
            if writer is not None:
                writer.close()
        with suppress(OSError):
            if self._file is not None:
                self._file.close()

    def _schema(self) -> Any:
        arrow = self._arrow
        number = arrow.float16() if self.shape.selection.dtype == "float16" else arrow.float32()
        vector = arrow.list_(number, self.shape.width)
        places = arrow.list_(arrow.int32())
        fields = [(name, arrow.string()) for name in _PLACES]
        fields[2:4] = [("line", arrow.int64()), ("sentence", arrow.int32())]
        fields[5:5] = [("tokens", arrow.list_(arrow.string())), ("starts", places), ("ends", places)]
        fields += [(name, vector if self.shape.selection.sentence else arrow.list_(vector)) for name in self._names]
        return arrow.schema(fields)

    def _flush(self) -> None:
        if not self._rows:
            return
        arrow, schema = self._arrow, self._schema()
        columns: dict[str, Any] = dict(zip(_PLACES, zip(*self._rows)))
        columns["tokens"] = self._tokens
        for i, name in enumerate(("starts", "ends")):
            columns[name] = [None if places is None else [place[i] for place in places] for places in self._places]
        arrays = [
            self._vector_array(self._vectors[field.name]) if field.name in self._names
            else arrow.array(columns[field.name], field.type)
            for field in schema
        ]  # fmt: skip
        self._writer.write_table(arrow.Table.from_arrays(arrays, schema=schema), row_group_size=len(self._rows))
        self._clear()

    def _vector_array(self, vectors: list[Array]) -> Any:
        """Return an Arrow array of vectors, or of lists of vectors, without a Python object for each number."""
        arrow, width = self._arrow, self.shape.width
        flat = np.concatenate([vector.reshape(-1) for vector in vectors])
        fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(flat), width)
        if self.shape.selection.sentence:
            return fixed
        ends = np.cumsum([0, *(len(vector) for vector in vectors)], dtype=np.int32)
        return arrow.ListArray.from_arrays(arrow.array(ends), fixed)
