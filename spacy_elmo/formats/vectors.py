"""Files of embedded sentences, in the layout of AllenNLP's ``elmo`` command.

There is a dataset per sentence, named "0", "1", ... in order. Its shape is (layers, tokens, width), or (tokens, width)
if there is one vector per token. The dataset ``sentence_to_index``, of shape (1,), holds JSON: {sentence: "index"}.
If a sentence occurs more than once, each occurrence has a dataset, and the JSON has the last index.
A dataset can also be named by a key instead of a number. Such sentences are not in the JSON.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, final

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, VectorsError, shown
from .atomic import replacing, writing
from .hdf5 import Floats, check_dataset, find_dataset, open_hdf5, read_dataset, read_string
from .paths import expanded

INDEX_NAME = "sentence_to_index"
_SHAPES = "Expected (layers, tokens, width) or (tokens, width)."


def of_length_1(vectors: Floats) -> Floats:
    """Return vectors, *Shape:* (..., width), each divided by its length if that is not 0."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Floats = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit


class DeferredErrorFile(FileIO):
    """A file that keeps the first error of writing in `error`, and reports success to HDF5, which called it.

    HDF5 can't close a file that it could not write to (a full disk, a quota), and crashes the process when it exits.
    The code that uses HDF5 calls `check` after its own steps, and after the file is closed.
    """

    error: BaseException | None = None  # an OSError, or a KeyboardInterrupt of a command's signal

    def check(self) -> None:
        """Raise the stored error, if there is one."""
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        remaining = memoryview(data)
        try:
            while remaining and self.error is None:
                remaining = remaining[super().write(remaining) :]
        except OSError as error:
            self.error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self.error is None else size or 0
        except OSError as error:
            self.error = error
            return size or 0

    def readinto(self, buffer: Any) -> int:
        # bytes that could not be written are zeros
        data = self.read(len(buffer)) if self.error is None else b""
        # h5py up to 3.11 gives a buffer of Cython 0.29, in which an empty slice can't be set
        memoryview(buffer)[:] = data.ljust(len(buffer), b"\0")
        return len(buffer)


@final
class VectorsWriter:
    """Writes embedded sentences one by one. The file appears when the ``with`` block succeeds; else nothing changes.

    index: whether to write the dataset sentence_to_index.
    named: the file that error messages name; None: `path`.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, index: bool = True, named: str | os.PathLike[str] | None = None
    ) -> None:
        self.path, self.index = expanded(path), index
        self._named = self.path if named is None else Path(named)
        self._indices: dict[str, str] = {}
        self._n_written = 0
        self._file: h5py.File | None = None
        self._raw: DeferredErrorFile
        self._stack = ExitStack()

    def __enter__(self) -> "VectorsWriter":
        """Open a temporary file in the folder of `path`. Raises VectorsError if it can't be created."""
        self._indices, self._n_written = {}, 0
        with ExitStack() as stack:
            temporary = stack.enter_context(replacing(self.path, VectorsError))
            with writing(self._named, VectorsError):
                self._raw = stack.enter_context(DeferredErrorFile(temporary, "x+b"))
                self._file = stack.enter_context(h5py.File(self._raw, "w"))
                self._raw.check()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        file, self._file = self._file, None
        if exc is not None or file is None:
            self._stack.__exit__(kind, exc, trace)
            return
        with self._stack, writing(self._named, VectorsError):
            if self.index:
                index = file.create_dataset(INDEX_NAME, (1,), dtype=h5py.string_dtype())
                index[0] = json.dumps(self._indices)
            file.close()  # writes what HDF5 still has in its buffers
            self._raw.check()

    def write(self, sentence: str, vectors: npt.ArrayLike, key: str | None = None) -> None:
        """Add a sentence.

        vectors: *Shape:* (layers, tokens, width) or (tokens, width), stored as float32.
        key: name of the dataset; None: the number of sentences written so far.

        Raises VectorsError if the vectors or the key can't be stored, or the key is in the file already.
        """
        if self._file is None:
            raise VectorsError(f"{self._named}: the writer is not open. Expected it inside a with statement.")
        name = str(self._n_written) if key is None else key
        if problem := key_problem(name):
            raise VectorsError(
                f"the key {shown(name)} can't name a dataset: {problem}. Use another key, or none: then a number "
                "is used."
            )
        if name in self._file:
            raise VectorsError(
                f"{self._named}: the key {shown(name)} was written before. Expected each key once: change it, or use "
                "none."
            )
        source = f"sentence {self._n_written}"
        try:
            with np.errstate(over="ignore"):  # a value that overflows raises below
                array: Floats = np.asarray(vectors, dtype=np.float32)
        except (TypeError, ValueError) as exc:
            raise VectorsError(f"{source} can't be converted to float32 ({exc}).") from exc
        if array.ndim not in (2, 3):
            raise VectorsError(f"{source} has shape {array.shape}. {_SHAPES}")
        if n_bad := int(array.size - np.isfinite(array).sum()):
            raise VectorsError(f"{source} has {n_bad} values that are NaN or too large for float32. Expected none.")
        with writing(self._named, VectorsError):
            self._file.create_dataset(name, data=array)
            self._raw.check()
        if self.index and key is None:
            self._indices[sentence] = name
        self._n_written += 1


def key_problem(key: object) -> str | None:
    """Return why a key can't name a dataset, as part of a message; None if it can."""
    if isinstance(key, str) and key not in ("", ".") and not re.search("[/\0\ud800-\udfff]", key):
        return None
    return "it is not a string, or empty, or a single dot, or it has a slash, NUL or half a surrogate pair"


def read_vectors(path: str | os.PathLike[str], *, first: int = 0) -> Iterator[tuple[str | None, Floats]]:
    """Read embedded sentences in order, one at a time.

    If the datasets are named by their sentences, the order is HDF5's order of names.

    first: number of the sentence with which it begins, from 0.

    Yields the text and its vectors, *Shape:* (layers, tokens, width) or (tokens, width), float32. The text is None if
    the file has no sentence_to_index, or if the same sentence occurs again later.
    Raises VectorsError when the first sentence, or the damaged one, is requested.
    """
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        keyed = keyed_datasets(file)
        for text, dataset in keyed[first:] if keyed else _numbered_datasets(file, first):
            check_dataset(dataset)
            yield text, read_dataset(dataset)


def _numbered_datasets(file: h5py.File, first: int) -> Iterator[tuple[str | None, h5py.Dataset]]:
    n_sentences = sum(map(_is_number, file))
    sentences = _read_index(file, n_sentences)
    for i in range(first, n_sentences):
        dataset = find_dataset(file, str(i))
        if dataset is None:
            numbered = f"{n_sentences:,} datasets with a number as their name"
            raise ElmoError(
                f"{file.filename}: the dataset {i} is missing, though the file has {numbered}. Expected 0, 1, 2 ..."
            )
        if dataset.shape is None or len(dataset.shape) not in (2, 3):
            raise ElmoError(f"{file.filename}: the dataset {i} has shape {dataset.shape}. {_SHAPES}")
        yield sentences.get(i), dataset


def keyed_datasets(file: h5py.File) -> list[tuple[str, h5py.Dataset]]:
    """Return the datasets of a file whose datasets are all named by their sentences, with these names; else nothing."""
    datasets = []
    for name in file:
        is_link = file.get(name, getclass=True, getlink=True) is not h5py.HardLink
        if is_link or file.get(name, getclass=True) is not h5py.Dataset or _is_number(name):
            return []
        if name in (INDEX_NAME, "char_embed") or len(file[name].shape or ()) not in (2, 3):
            return []
        datasets.append((name, file[name]))
    return datasets


def _is_number(name: str) -> bool:
    """Whether a dataset's name is a decimal number without leading zeros."""
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")


def _read_index(file: h5py.File, n_sentences: int) -> dict[int, str]:
    """Return the sentences by number, from sentence_to_index; empty if the file has none."""
    dataset = find_dataset(file, INDEX_NAME)
    if dataset is None:
        if not n_sentences:
            raise ElmoError(
                f"{file.filename}: no dataset 0 and no sentence_to_index at its root. Expected a file of embedded "
                "sentences: those in groups, such as a group for each document, are not read."
            )
        return {}
    text = read_string(dataset)
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise ElmoError(
            f"{file.filename}: sentence_to_index is {shown(text)}. Expected one string: JSON of sentence: index."
        )
    sentences = {}
    for sentence, index in entries.items():
        if not isinstance(index, str) or not _is_number(index) or len(index) > 18 or int(index) >= n_sentences:
            raise ElmoError(
                f"{file.filename}: sentence_to_index gives the index {shown(index)}. Expected one of 0 to "
                f"{n_sentences - 1}."
            )
        sentences[int(index)] = sentence
    return sentences
