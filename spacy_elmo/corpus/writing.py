"""What is written of the layers of a sentence; the five formats of files that it is written to, and found in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import NotEmbeddedError, SettingsError, VectorsError, shown
from ..formats.atomic import replacing, writing
from ..formats.paths import expanded
from ..formats.strict_json import read_json
from ..formats.vectors import VectorsWriter, read_vectors
from ..inference import Embedder
from ..models.doc_layers import TOKENS, VECTORS, annotate, key, layers_of, mix, mix_parameters, tokens_of, vectors_of
from ..models.types import is_number
from ..text.stream import Document
from ..text.words import line_of
from .bilm import embed_finite

Array = npt.NDArray[Any]
NAMES = ("all", "top", "mean")
Layers = str | os.PathLike[str] | Mapping[str, Any]  # as `Selection.of` describes them
DTYPES = ("float32", "float16")
_MOST_BYTES = 1 << 20  # of a file with the weights of a mix


@dataclass(frozen=True)
class Selection:
    """What is made of the layers of a sentence.

    name: "all", "top", "mean" or "mix". weights: *Shape:* (layers,), of a mix before the softmax.
    sentence: whether the mean over the tokens is taken.
    """

    name: str
    weights: tuple[float, ...] = ()
    gamma: float = 1.0
    dtype: str = "float32"
    sentence: bool = False

    @classmethod
    def of(cls, layers: Layers, dtype: str, sentence: bool) -> Selection:
        """Return what a user asks for with these arguments of `embed`. Raises SettingsError."""
        if dtype not in DTYPES:
            raise SettingsError(f"dtype is {shown(dtype)}. Expected {' or '.join(DTYPES)}.")
        if str(layers) in NAMES:
            return cls(str(layers), dtype=dtype, sentence=sentence)
        path = expanded(layers) if isinstance(layers, str | os.PathLike) else None
        if not isinstance(layers, Mapping) and not (path and path.is_file()):
            got = shown(str(path) if path else layers)
            raise SettingsError(
                f"layers is {got}, which is no file. Expected one of {', '.join(NAMES)}, or a JSON file with the "
                'weights of a mix, such as {"w": [0.0, 1.0, 0.0], "gamma": 1.0} (in Python also a dict).'
            )
        try:
            weights, gamma = _mix_of(read_json(path, _MOST_BYTES) if path else layers)
        except (OSError, ValueError) as error:
            raise SettingsError(
                f'{path or "layers"}: not the weights of a mix ({error}). Expected a JSON object with "w", a weight '
                'for each layer before the softmax, and perhaps "gamma".'
            ) from error
        return cls("mix", weights, gamma, dtype, sentence)

    def check(self, n_layers: int) -> None:
        """Raise SettingsError if a mix is not one of that many layers."""
        if self.name == "mix" and len(self.weights) != n_layers:
            raise SettingsError(
                f"the mix has {len(self.weights)} weights. Expected {n_layers}: one for each layer of the biLM."
            )

    @np.errstate(under="ignore")
    def __call__(self, layers: Array) -> Array:
        """Return what is made of layers, *Shape:* (layers, tokens, width), float32.

        Returns *Shape:* (tokens, width), or (layers, tokens, width) for all of them, without the axis of the tokens if
        there is one vector for a sentence.
        """
        chosen: Any = layers  # numpy and Thinc have types of their own for arrays
        if self.name == "top":
            chosen = layers[-1].copy()  # a view would keep all layers in memory
        elif self.name == "mean":
            chosen = layers.mean(0)
        elif self.name == "mix":
            chosen = mix(chosen, np.float32(self.gamma) * mix_parameters(self.weights))
        if self.sentence:
            chosen = chosen.mean(-2)
        with np.errstate(over="ignore"):  # values that are too large become infinite, and raise below
            result: Array = chosen.astype(self.dtype, copy=False)
        if self.dtype == "float16" and not np.isfinite(result).all():
            raise SettingsError(
                "dtype is float16, but this biLM gives values beyond 65504, the largest of float16. Expected float32."
            )
        return result

    def embed(self, bilm: Embedder, sentences: Sequence[Sequence[str]]) -> list[Array]:
        """Return what is made of the layers of each sentence; zeros for one without words. Raises WeightsError."""
        shape = (bilm.options.width,) if self.sentence else (0, bilm.options.width)
        made = [np.zeros(shape, self.dtype) for _ in sentences]
        full = [i for i, sentence in enumerate(sentences) if sentence]
        for i, layers in embed_finite(bilm, [sentences[i] for i in full]):
            made[full[i]] = self(layers)
        return made

    def columns(self, n_layers: int) -> list[str]:
        """Return the columns of a table: "layer_0" and so on for all layers, else "vectors" or "vector"."""
        if self.name == "all":
            return [f"layer_{k}" for k in range(n_layers)]
        return ["vector" if self.sentence else "vectors"]

    def by_column(self, array: Array) -> list[Array]:
        """Return what each column has of what the selection returned for a sentence."""
        return list(array) if self.name == "all" else [array]


def _mix_of(content: Any) -> tuple[tuple[float, ...], float]:
    if isinstance(content, list):
        if len(content) != 1:
            raise ValueError(f"a list of {len(content)} mixes; keep the one that is meant")
        content = content[0]
    if not isinstance(content, Mapping) or "w" not in content:
        raise ValueError('no object with "w"')
    weights, gamma = content["w"], content.get("gamma", 1.0)
    if not isinstance(weights, list | tuple) or not weights or not all(map(is_number, (*weights, gamma))):
        raise ValueError('"w" is no list of finite numbers of float32, or "gamma" is no such number')
    return tuple(float(value) for value in weights), float(gamma)


def required(module: str) -> Any:
    """Import a module of an optional package. Raises VectorsError if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        extra = {"pyarrow": "parquet"}.get(package, package)
        raise VectorsError(
            f'{package} is missing, which this format needs. Get it with pip install "spacy-elmo[{extra}]", or '
            "choose a format that needs no other package: hdf5 or spacy, or npy for vectors of sentences. Give it as "
            "format (--format) for a folder, as the end of the name for a file."
        ) from error


Write = Callable[[Document, Sequence[Array]], None]  # a document, and what the selection made of each of its sentences
WriteAll = Callable[[Iterable[Document], Iterable[Array]], None]  # the same of several documents


@contextmanager
def vector_file(format: str, path: Path, selection: Selection, n_layers: int, width: int) -> Iterator[WriteAll]:
    """Write a file of vectors, which appears at `path` when the block succeeds. Raises VectorsError."""
    with replacing(path, VectorsError) as temporary, ExitStack() as stack:
        with writing(path, VectorsError):
            write = stack.enter_context(FORMATS[format].write(path, temporary, selection, n_layers, width))

        def write_all(documents: Iterable[Document], vectors: Iterable[Array]) -> None:
            in_order = iter(vectors)
            with writing(path, VectorsError):
                for document in documents:
                    write(document, list(islice(in_order, len(document.sentences))))

        yield write_all
        with writing(path, VectorsError):
            stack.close()
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())


ROW_GROUP_BYTES = 64 << 20  # of vectors


# The columns beside the vectors, and their types; [...] is a list.
_COLUMNS = {
    "id": "string",
    "source": "string",
    "line": "int64",
    "sentence": "int32",
    "text": "string",
    "tokens": "[string]",
    "starts": "[int32]",
    "ends": "[int32]",
    "meta": "string",
}


def _rows(document: Document) -> Iterator[tuple[Any, ...]]:
    """Yield the values of these columns for each sentence."""
    places = document.places()
    for number, words in enumerate(document.sentences):
        text, starts, ends = None, None, None
        if document.text is not None and places is not None:
            starts, ends = map(list, zip(*places[number]))
            text = document.text[starts[0] : ends[-1]]
        yield document.id, document.source, document.line, number, text, words, starts, ends, document.meta


@contextmanager
def _parquet(path: Path, temporary: Path, selection: Selection, n_layers: int, width: int) -> Iterator[Write]:
    """Write a Parquet file: a row a sentence, with the columns of the table above and those of the vectors."""
    arrow = required("pyarrow")
    names = selection.columns(n_layers)
    vector = arrow.list_(arrow.type_for_alias(selection.dtype), width)
    fields = []
    for name, kind in _COLUMNS.items():
        of_value = arrow.type_for_alias(kind.strip("[]"))
        fields.append((name, arrow.list_(of_value) if kind.startswith("[") else of_value))
    schema = arrow.schema(fields + [(name, vector if selection.sentence else arrow.list_(vector)) for name in names])
    packed = {name + ".list.element" * kind.startswith("["): "zstd" for name, kind in _COLUMNS.items()}
    # vectors hardly pack, and no value is there twice
    depth = ".list.element" if selection.sentence else ".list.element.list.element"
    plain = dict.fromkeys((name + depth for name in names), "none")
    columns: dict[str, list[Any]] = {name: [] for name in (*_COLUMNS, *names)}
    n_bytes = 0

    def array_of(field: Any) -> Any:
        values = columns[field.name]
        if field.name not in names:
            return arrow.array(values, field.type)
        flat = np.concatenate([part.reshape(-1) for part in values])  # no Python object for each number
        fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(flat), width)
        if selection.sentence:
            return fixed
        ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
        return arrow.ListArray.from_arrays(arrow.array(ends), fixed)

    def flush() -> None:
        nonlocal n_bytes
        if n_rows := len(columns["line"]):
            table = arrow.Table.from_arrays([array_of(field) for field in schema], schema=schema)
            writer.write_table(table, row_group_size=n_rows)
        for values in columns.values():
            values.clear()
        n_bytes = 0

    def write(document: Document, vectors: Sequence[Array]) -> None:
        nonlocal n_bytes
        for row, array in zip(_rows(document), vectors):
            for column, value in zip(columns.values(), (*row, *selection.by_column(array)), strict=True):
                column.append(value)
            n_bytes += array.nbytes
            if n_bytes >= ROW_GROUP_BYTES:
                flush()

    with temporary.open("wb") as file:  # pyarrow takes no name that is not UTF-8
        writer = required("pyarrow.parquet").ParquetWriter(
            file,
            schema,
            compression=packed | plain,
            use_dictionary=["source", "tokens.list.element"],
            write_statistics=["id", "source", "line"],
        )
        try:
            yield write
            flush()
            writer.close()
        except BaseException:
            with suppress(OSError):  # the disk may be full; the file is deleted anyway
                writer.close()
            raise


@contextmanager
def _hdf5(path: Path, temporary: Path, selection: Selection, n_layers: int, width: int) -> Iterator[Write]:
    """Write an HDF5 file. The datasets are named "0", "1" ... in each file."""
    with VectorsWriter(temporary, named=path) as writer:

        def write(document: Document, vectors: Sequence[Array]) -> None:
            for sentence, array in zip(document.sentences, vectors):
                writer.write(line_of(sentence), array)

        yield write


@contextmanager
def _docbin(path: Path, temporary: Path, selection: Selection, n_layers: int, width: int) -> Iterator[Write]:
    """Write a .spacy file, which is in memory until the end: docs with what `doc._.elmo` reads in their user_data."""
    vocab, docs = Vocab(), DocBin(store_user_data=True)
    mean = np.full(n_layers, 1 / n_layers, np.float32)

    def write(document: Document, vectors: Sequence[Array]) -> None:
        words = list(chain.from_iterable(document.sentences))
        starts: Any = [i == 0 for sentence in document.sentences for i in range(len(sentence))]
        spaces = None  # the text is not known
        if places := document.places():
            spaces = [after[0] > before[1] for before, after in pairwise(chain.from_iterable(places))] + [False]
        doc = Doc(vocab, words=words, spaces=spaces, sent_starts=starts)
        user_data: Any = doc.user_data  # spaCy's type stub expects strings
        user_data |= {"source": document.source, "line": document.line, "id": document.id, "meta": document.meta}
        array: Any = np.concatenate(vectors, axis=-2)
        if selection.name == "all":
            annotate(doc, "elmo", array, mean, "layers")
        else:
            user_data[key("elmo", TOKENS)], user_data[key("elmo", VECTORS)] = tokens_of(doc), array
        docs.add(doc)

    yield write
    temporary.write_bytes(docs.to_bytes())


MOST_BYTES = 99_000_000  # of the sentences: the library takes no header of more than 100 MB, tensors included


@contextmanager
def _safetensors(path: Path, temporary: Path, selection: Selection, n_layers: int, width: int) -> Iterator[Write]:
    """Write a .safetensors file, which is in memory until the end. docs/corpora.md tells its tensors and metadata."""
    library = required("safetensors.numpy")
    columns: dict[str, list[Array]] = {name: [] for name in selection.columns(n_layers)}
    facts: list[str] = []
    lengths: list[int] = []
    n_bytes = 0

    def write(document: Document, vectors: Sequence[Array]) -> None:
        nonlocal n_bytes
        for number, (sentence, array) in enumerate(zip(document.sentences, vectors)):
            place = {"id": document.id, "source": document.source, "line": document.line, "sentence": number}
            told = json.dumps({**place, "tokens": sentence})
            n_bytes += len(json.dumps(told))  # the header has the JSON as a string, in which quotes are escaped
            if n_bytes > MOST_BYTES:
                raise VectorsError(
                    f"{path}: its header has no room for the words of more than {len(facts):,} "
                    "sentences. Write a folder of shards, with a smaller shard_size (--shard-size) if it is one, "
                    "or another format, such as Parquet."
                )
            facts.append(told)
            lengths.append(len(sentence))
            for arrays, part in zip(columns.values(), selection.by_column(array)):
                arrays.append(part[None] if part.ndim == 1 else part)

    yield write
    empty = np.zeros((0, width), selection.dtype)
    tensors = {name: np.concatenate([empty, *arrays]) for name, arrays in columns.items()}
    tensors["ends"] = np.cumsum(lengths, dtype=np.int64)
    about = {"sentences": f"[{', '.join(facts)}]", "rows": "sentences" if selection.sentence else "tokens"}
    temporary.write_bytes(library.save(tensors, about))


@contextmanager
def _npy(path: Path, temporary: Path, selection: Selection, n_layers: int, width: int) -> Iterator[Write]:
    """Write an .npy file: *Shape:* (sentences, width), or (sentences, layers, width). It is in memory till the end."""
    found: list[Array] = []
    yield lambda document, vectors: found.extend(vectors)
    shape = (0, n_layers, width) if selection.name == "all" else (0, width)
    with temporary.open("wb") as file:
        np.save(file, np.stack(found) if found else np.zeros(shape, selection.dtype), allow_pickle=False)


# Finding what was written


class FoundSentence(NamedTuple):
    """A sentence of an output, with None for what its format does not hold.

    vectors: *Shape:* (layers, tokens, width) or (tokens, width), or without tokens if there is one for the sentence.
    """

    vectors: Array
    tokens: list[str] | None = None
    source: str | None = None
    line: int | None = None


def _find_parquet(path: Path, place: int) -> FoundSentence | None:
    file = required("pyarrow.parquet").ParquetFile(path)
    for group in range(file.num_row_groups):
        n_rows = file.metadata.row_group(group).num_rows
        if place < n_rows:
            [row] = file.read_row_group(group).slice(place, 1).to_pylist()
            names = [name for name in row if name.startswith("layer_") or name in ("vector", "vectors")]
            arrays = [np.array(row[name], np.float32) for name in names]
            vectors = np.stack(arrays) if names[0].startswith("layer_") else arrays[0]
            return FoundSentence(vectors, row["tokens"], row["source"], row["line"])
        place -= n_rows
    return None


def _find_hdf5(path: Path, place: int) -> FoundSentence | None:
    for text, vectors in read_vectors(path, first=place):
        tokens = None if text is None else [word.replace("\u2423", " ") for word in text.split()]
        return FoundSentence(vectors, tokens)
    return None


def _find_docbin(path: Path, place: int) -> FoundSentence | None:
    for doc in DocBin().from_disk(path).get_docs(Vocab()):
        sentences = list(doc.sents)
        if place < len(sentences):
            sentence = sentences[place]
            try:
                vectors: Any = layers_of(sentence, attr="elmo")
            except NotEmbeddedError:
                vectors = vectors_of(sentence, attr="elmo")
            data: dict[Any, Any] = doc.user_data
            return FoundSentence(vectors, [token.text for token in sentence], data["source"], data["line"])
        place -= len(sentences)
    return None


def _find_safetensors(path: Path, place: int) -> FoundSentence | None:
    with required("safetensors").safe_open(path, "numpy") as file:
        about, ends = file.metadata(), file.get_tensor("ends")
        sentences = json.loads(about["sentences"])
        if place >= len(sentences):
            return None
        names = sorted((name for name in file.keys() if name != "ends"), key=lambda name: (len(name), name))  # noqa: SIM118
        # earlier files do not say what a row is of
        one = about.get("rows") == "sentences" or file.get_slice(names[0]).get_shape()[0] != ends[-1]
        start, end = (place, place + 1) if one else (int(ends[place - 1]) if place else 0, int(ends[place]))
        arrays = [file.get_slice(name)[start:end] for name in names]
    vectors = np.stack(arrays) if names[0].startswith("layer_") else arrays[0]
    facts = sentences[place]
    return FoundSentence(vectors[..., 0, :] if one else vectors, facts["tokens"], facts["source"], facts["line"])


def _find_npy(path: Path, place: int) -> FoundSentence | None:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return FoundSentence(np.array(array[place])) if place < len(array) else None


class Format(NamedTuple):
    """How files are written, how a sentence is found in one, and the module of an optional package that both need."""

    write: Callable[[Path, Path, Selection, int, int], AbstractContextManager[Write]]
    find: Callable[[Path, int], FoundSentence | None]
    needs: str | None = None


FORMATS = {
    "parquet": Format(_parquet, _find_parquet, "pyarrow.parquet"),
    "hdf5": Format(_hdf5, _find_hdf5),
    "spacy": Format(_docbin, _find_docbin),
    "safetensors": Format(_safetensors, _find_safetensors, "safetensors.numpy"),
    "npy": Format(_npy, _find_npy),
}
# the ends of names that say the format, and of those the one that a shard's name has
SUFFIXES = {f".{name}": name for name in FORMATS} | {".h5": "hdf5"}
