"""What is written of the layers of a sentence, and the five formats of files that it is written to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

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
        """Return the columns of a table: "layer_0" and so on for all layers, else "vectors" or "vector"."""
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
    """What a format must know of the vectors: what is written of that many layers of a width."""

    selection: Selection
    n_layers: int
    width: int


class VectorFile:
    """A file of vectors of one format. `vector_file` writes one.

    path: the file, as messages name it.
    temporary: what is written to.
    """

    needs: tuple[str, str] | None = None  # a module that must be there, and the extra of this package that brings it

    def __init__(self, path: Path, temporary: Path, shape: Shape) -> None:
        self.path, self.temporary, self.shape = path, temporary, shape

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        """Write a document. vectors: what the selection made of the layers of each of its sentences."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is left, and close the file."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Close the file, which is incomplete, without an error."""


@contextmanager
def vector_file(format: str, path: Path, shape: Shape) -> Iterator[VectorFile]:
    """Write a file of vectors, which appears at `path` when the block succeeds. If it raises, an earlier file stays.

    format: a name of WRITERS.

    Raises VectorsError if the file can't be written.
    """
    with replacing(path, VectorsError) as temporary:
        with writing(path, VectorsError):
            file = WRITERS[format](path, temporary, shape)
        try:
            yield file
            with writing(path, VectorsError):
                file.close()
                _sync(temporary)
        except BaseException:
            file.abandon()
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


ROW_GROUP_BYTES = 64 << 20  # of vectors
_PLACES = ("id", "source", "line", "sentence", "text", "meta")


class ParquetFile(VectorFile):
    """Writes a Parquet file.

    Its columns: id, source, line, sentence (its number in the document, from 0), text, tokens, starts and ends (the
    places of each token in the document's text), meta (JSON), and those of the vectors (see `Selection.columns`).
    """

    needs = ("pyarrow.parquet", "parquet")

    def __init__(self, path: Path, temporary: Path, shape: Shape) -> None:
        super().__init__(path, temporary, shape)
        self._arrow: Any = required("pyarrow", "parquet")
        self._names = shape.selection.columns(shape.n_layers)
        self._clear()
        listed = ("tokens.list.element", "starts.list.element", "ends.list.element")
        depth = ".list.element" if shape.selection.sentence else ".list.element.list.element"
        packed = dict.fromkeys((*_PLACES, *listed), "zstd")
        # vectors hardly pack, and no value is there twice
        plain = dict.fromkeys((name + depth for name in self._names), "none")
        self._file = temporary.open("wb")  # pyarrow takes no name that is not UTF-8
        self._schema = self._make_schema()
        self._writer: Any = required(*self.needs).ParquetWriter(
            self._file,
            self._schema,
            compression=packed | plain,
            use_dictionary=["source", "tokens.list.element"],
            write_statistics=["id", "source", "line"],
        )

    def _make_schema(self) -> Any:
        arrow, sentence = self._arrow, self.shape.selection.sentence
        number = arrow.float16() if self.shape.selection.dtype == "float16" else arrow.float32()
        vector = arrow.list_(number, self.shape.width)
        places = arrow.list_(arrow.int32())
        fields = [(name, arrow.string()) for name in _PLACES]
        fields[2:4] = [("line", arrow.int64()), ("sentence", arrow.int32())]
        fields[5:5] = [("tokens", arrow.list_(arrow.string())), ("starts", places), ("ends", places)]
        return arrow.schema(fields + [(name, vector if sentence else arrow.list_(vector)) for name in self._names])

    def _clear(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._tokens: list[list[str]] = []
        self._places: list[list[tuple[int, int]] | None] = []
        self._vectors: dict[str, list[Array]] = {name: [] for name in self._names}
        self._bytes = 0

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
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

    def _flush(self) -> None:
        if not self._rows:
            return
        arrow = self._arrow
        columns: dict[str, Any] = dict(zip(_PLACES, zip(*self._rows)))
        columns["tokens"] = self._tokens
        for i, name in enumerate(("starts", "ends")):
            columns[name] = [None if places is None else [place[i] for place in places] for places in self._places]
        arrays = [
            self._vector_array(self._vectors[field.name]) if field.name in self._names
            else arrow.array(columns[field.name], field.type)
            for field in self._schema
        ]  # fmt: skip
        table = arrow.Table.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(table, row_group_size=len(self._rows))
        self._clear()

    def _vector_array(self, vectors: list[Array]) -> Any:
        """Return an Arrow array of vectors, or of lists of vectors, without a Python object for each number."""
        arrow = self._arrow
        flat = np.concatenate([vector.reshape(-1) for vector in vectors])
        fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(flat), self.shape.width)
        if self.shape.selection.sentence:
            return fixed
        ends = np.cumsum([0, *(len(vector) for vector in vectors)], dtype=np.int32)
        return arrow.ListArray.from_arrays(arrow.array(ends), fixed)

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._file.close()

    def abandon(self) -> None:
        for file in (self._writer, self._file):
            with suppress(OSError):  # the disk may be full; the file is deleted anyway
                file.close()


class Hdf5File(VectorFile):
    """Writes an HDF5 file. The datasets are named "0", "1" ... in each file."""

    def __init__(self, path: Path, temporary: Path, shape: Shape) -> None:
        super().__init__(path, temporary, shape)
        self._writer: VectorsWriter | None = VectorsWriter(temporary, named=path).__enter__()

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        assert self._writer is not None
        for sentence, array in zip(document.sentences, vectors):
            self._writer.write(" ".join(sentence.tokens), array)

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__(None, None, None)

    def abandon(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.__exit__(*sys.exc_info())


class DocBinFile(VectorFile):
    """Writes a .spacy file. All of its docs are in memory until the end.

    Their `doc.user_data` has "source", "line", "id" and "meta", and what `doc._.elmo` reads: the layers, or the vectors
    that were made of them.
    """

    def __init__(self, path: Path, temporary: Path, shape: Shape) -> None:
        super().__init__(path, temporary, shape)
        self._vocab = Vocab()
        self._docs = DocBin(store_user_data=True)

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        words = [word for sentence in document.sentences for word in sentence.tokens]
        starts: list[bool | int | None] = [
            i == 0 for sentence in document.sentences for i in range(len(sentence.tokens))
        ]
        doc = Doc(self._vocab, words=words, spaces=_spaces(document), sent_starts=starts)
        user_data: Any = doc.user_data  # spaCy's type stub expects strings
        user_data |= {"source": document.source, "line": document.line, "id": document.id, "meta": document.meta}
        array: Any = np.concatenate(vectors, axis=-2)
        if self.shape.selection.name == "all":
            mean = np.full(self.shape.n_layers, 1 / self.shape.n_layers, np.float32)
            annotate(doc, "elmo", array, mean, "layers")
        else:
            user_data[key("elmo", TOKENS)], user_data[key("elmo", VECTORS)] = tokens_of(doc), array
        self._docs.add(doc)

    def close(self) -> None:
        self.temporary.write_bytes(self._docs.to_bytes())


def _spaces(document: Document) -> list[bool] | None:
    """Return whether a blank follows each word; None if the text is not known."""
    places = [place for sentence in document.sentences for place in sentence.offsets or []]
    if len(places) != document.tokens:
        return None
    return [after[0] > before[1] for before, after in pairwise(places)] + [False]


MOST_BYTES = 99_000_000  # of the sentences: the library takes no header of more than 100 MB, tensors included


class SafetensorsFile(VectorFile):
    """Writes a .safetensors file. All of its vectors are in memory until the end.

    Its tensors: those of the vectors (see `Selection.columns`), *Shape:* (tokens, width), and "ends",
    *Shape:* (sentences,), int64, the number of tokens up to the end of each sentence. With one vector a sentence,
    the vectors are of *Shape:* (sentences, width). The metadata "sentences" is a JSON list with an object a sentence:
    id, source, line, sentence and tokens.

    Raises VectorsError if the sentences are too many for the metadata.
    """

    needs = ("safetensors.numpy", "safetensors")

    def __init__(self, path: Path, temporary: Path, shape: Shape) -> None:
        super().__init__(path, temporary, shape)
        self._library: Any = required(*self.needs)
        self._vectors: dict[str, list[Array]] = {name: [] for name in shape.selection.columns(shape.n_layers)}
        self._sentences: list[str] = []
        self._ends: list[int] = []
        self._bytes = 0

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
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
            for arrays, part in zip(self._vectors.values(), self.shape.selection.by_column(array)):
                arrays.append(part[None] if part.ndim == 1 else part)

    def close(self) -> None:
        empty = np.zeros((0, self.shape.width), self.shape.selection.dtype)
        tensors = {name: np.concatenate([empty, *arrays]) for name, arrays in self._vectors.items()}
        tensors["ends"] = np.cumsum(self._ends, dtype=np.int64)
        self.temporary.write_bytes(self._library.save(tensors, {"sentences": f"[{', '.join(self._sentences)}]"}))


class NpyFile(VectorFile):
    """Writes an .npy file: *Shape:* (sentences, width), or (sentences, layers, width). It is in memory till the end."""

    def __init__(self, path: Path, temporary: Path, shape: Shape) -> None:
        super().__init__(path, temporary, shape)
        layers = (shape.n_layers,) if shape.selection.name == "all" else ()
        self._vectors: list[Array] = []
        self._empty = np.zeros((0, *layers, shape.width), shape.selection.dtype)

    def add(self, document: Document, vectors: Sequence[Array]) -> None:
        self._vectors += vectors

    def close(self) -> None:
        with self.temporary.open("wb") as file:
            np.save(file, np.stack(self._vectors) if self._vectors else self._empty, allow_pickle=False)


WRITERS: dict[str, type[VectorFile]] = {
    "parquet": ParquetFile,
    "hdf5": Hdf5File,
    "spacy": DocBinFile,
    "safetensors": SafetensorsFile,
    "npy": NpyFile,
}
# the ends of names that say the format, and of those the one that a shard's name has
SUFFIXES = {f".{name}": name for name in WRITERS} | {".h5": "hdf5"}
WITHOUT_SENTENCE_VECTORS = ("hdf5", "spacy")
