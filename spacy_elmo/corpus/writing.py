"""What all writers of vectors have in common."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import SettingsError, VectorsError, shown
from ..formats.atomic import replacing, writing
from ..formats.strict_json import read_json
from ..formats.vectors import VectorsWriter
from ..models.types import is_number
from ..pipeline.attributes import TOKENS, VECTORS, annotate, key, mix_parameters, tokens_of
from .reading import Document

Array = npt.NDArray[Any]
NAMES = ("all", "top", "mean")
Layers = str | os.PathLike[str] | Mapping[str, Any]  # as `Selection.of` describes them
DTYPES = ("float32", "float16")
_MOST_BYTES = 1 << 20  # of a file with the weights of a mix


@dataclass(frozen=True)
class Selection:
    """What is made of the layers of a sentence.

    name: "all", "top", "mean" or "mix".
    weights: *Shape:* (layers,), of a mix before the softmax; empty for the others.
    gamma: factor of a mix.
    dtype: type of the values that are written, "float32" or "float16".
    sentence: whether the mean over the tokens is taken, which gives one vector for a sentence.
    """

    name: str
    weights: tuple[float, ...] = ()
    gamma: float = 1.0
    dtype: str = "float32"
    sentence: bool = False

    @classmethod
    def of(cls, layers: Layers, dtype: str, sentence: bool) -> Selection:
        """Return the selection that a user asks for.

        layers: "all", "top", "mean", or the weights of a mix: a JSON file, or a dict, with "w", the weights before the
            softmax, and perhaps "gamma", as `python -m spacy elmo weights --json` prints them.
        dtype, sentence: as of the class.

        Raises SettingsError if they can't be used.
        """
        if dtype not in DTYPES:
            raise SettingsError(f"dtype is {shown(dtype)}. Expected {' or '.join(DTYPES)}.")
        if str(layers) in NAMES:
            return cls(str(layers), dtype=dtype, sentence=sentence)
        is_path = isinstance(layers, str | os.PathLike)
        if not isinstance(layers, Mapping) and not (is_path and Path(layers).is_file()):
            got = shown(str(layers) if is_path else layers)
            raise SettingsError(
                f"layers is {got}, which is no file. Expected one of {', '.join(NAMES)}, or a JSON file with the "
                'weights of a mix, such as {"w": [0.0, 1.0, 0.0], "gamma": 1.0} (in Python also a dict).'
            )
        try:
            mix = layers if isinstance(layers, Mapping) else read_json(Path(layers), _MOST_BYTES)
            weights, gamma = _mix_of(mix)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"{layers if is_path else 'layers'}: not the weights of a mix ({error}). Expected a JSON object "
                'with "w", a weight for each layer before the softmax, and perhaps "gamma".'
            ) from error
        return cls("mix", weights, gamma, dtype, sentence)

    def check(self, n_layers: int) -> None:
        """Raise SettingsError if a mix is not one of that many layers."""
        if self.name == "mix" and len(self.weights) != n_layers:
            raise SettingsError(
                f"the mix has {len(self.weights)} weights. Expected {n_layers}: one for each layer of the biLM."
            )

    def __call__(self, layers: Array) -> Array:
        """Return what is written of the layers of a sentence.

        layers: *Shape:* (layers, tokens, width), float32.

        Returns *Shape:* (tokens, width), or (layers, tokens, width) for all of them, without the axis of the tokens if
        there is one vector for a sentence.
        Raises SettingsError if a value is too large for float16.
        """
        if self.name == "all":
            chosen = layers
        elif self.name == "top":
            chosen = layers[-1].copy()  # a view would keep all layers in memory
        elif self.name == "mean":
            chosen = layers.mean(0)
        else:
            chosen = np.tensordot(np.float32(self.gamma) * mix_parameters(self.weights), layers, axes=1)
        if self.sentence:
            chosen = chosen.mean(-2)
        with np.errstate(over="ignore"):  # values that are too large become infinite, and raise below
            result = chosen.astype(self.dtype, copy=False)
        if self.dtype == "float16" and not np.isfinite(result).all():
            raise SettingsError(
                "dtype is float16, but this biLM gives values beyond 65504, the largest of float16. Expected float32."
            )
        return result

    def columns(self, n_layers: int) -> list[str]:
        """Return the names of the columns of a table: "layer_0" and so on for all layers, else "vectors" or "vector".

        n_layers: layers of the biLM.
        """
        if self.name == "all":
            return [f"layer_{k}" for k in range(n_layers)]
        return ["vector" if self.sentence else "vectors"]

    def by_column(self, array: Array) -> list[Array]:
        """Return what a sentence has in each column. array: what the selection returned for its layers."""
        return list(array) if self.name == "all" else [array]


def _mix_of(content: Any) -> tuple[tuple[float, ...], float]:
    if isinstance(content, list):
        if len(content) != 1:
            raise ValueError(f"a list of {len(content)} mixes; keep the one that is meant")
        content = content[0]
    if not isinstance(content, Mapping) or "w" not in content:
        raise ValueError('no object with "w"')
    weights, gamma = content["w"], content.get("gamma", 1.0)
    if not isinstance(weights, list | tuple) or not weights:
        raise ValueError('"w" is no list of numbers')
    if not all(is_number(value) for value in (*weights, gamma)):
        raise ValueError('"w" or "gamma" has something else than finite numbers of float32')
    return tuple(float(value) for value in weights), float(gamma)


class Shape(NamedTuple):
    """What a writer must know of the vectors.

    selection: what is written of the layers.
    n_layers: layers of the biLM.
    width: of a layer.
    """

    selection: Selection
    n_layers: int
    width: int


class VectorFile(AbstractContextManager["VectorFile"], ABC):
    """A file of vectors, which appears at its path when the `with` block succeeds.

    If the block raises, an earlier file at `path` stays unchanged.

    path: the file.
    shape: of the vectors.

    Raises VectorsError if the file can't be written.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        self.path, self.shape = path, shape
        self._replacing: AbstractContextManager[Path] | None = None

    @staticmethod
    def check_packages() -> None:
        """Raise VectorsError, which says what to install, if the format needs an optional package that is missing."""

    @abstractmethod
    def open(self, temporary: Path) -> None:
        """Begin to write. temporary: the path to write to."""

    @abstractmethod
    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Write a document.

        document: its sentences and where they come from.
        vectors: what the selection made of the layers of each sentence.
        """

    @abstractmethod
    def close(self) -> None:
        """Write what is left, and close the file."""

    def abandon(self) -> None:
        """Close the file, which is incomplete, without an error."""

    def __enter__(self) -> VectorFile:
        replaced = replacing(self.path, VectorsError)
        temporary = replaced.__enter__()
        self._replacing, self._temporary = replaced, temporary
        try:
            with writing(self.path, VectorsError):
                self.open(temporary)
        except BaseException as error:
            replaced.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._replacing is not None
        if error is not None:
            self.abandon()
            self._replacing.__exit__(kind, error, trace)
            return
        try:
            with writing(self.path, VectorsError):
                self.close()
                _sync(self._temporary)
        except BaseException as other:
            self.abandon()
            self._replacing.__exit__(type(other), other, other.__traceback__)
            raise
        self._replacing.__exit__(None, None, None)


def required(module: str, extra: str) -> Any:
    """Import a module of an optional package. Raises VectorsError, which says what to install, if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise VectorsError(
            f'{package} is missing, which this format needs. Get it with pip install "spacy-elmo[{extra}]", or '
            "choose hdf5 or spacy, which need no other package: as format (--format) for a folder, as the end of "
            "the name for a file."
        ) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
                raise VectorsError(
                    f"{self.path}: its header has no room for the words of more than {len(self._sentences):,} "
                    "sentences. Write a folder of shards, with a smaller shard_size (--shard-size) if it is one, "
                    "or another format, such as Parquet."
                )
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


WRITERS: dict[str, type[VectorFile]] = {
    "parquet": ParquetFile,
    "hdf5": Hdf5File,
    "spacy": DocBinFile,
    "safetensors": SafetensorsFile,
    "npy": NpyFile,
}
# the ends of names that say the format, and of those the one that a shard's name has
SUFFIXES = {".parquet": "parquet", ".hdf5": "hdf5", ".h5": "hdf5", ".spacy": "spacy", ".safetensors": "safetensors"}
SUFFIXES |= {".npy": "npy"}
WITHOUT_SENTENCE_VECTORS = ("hdf5", "spacy")
