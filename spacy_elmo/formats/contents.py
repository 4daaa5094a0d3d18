"""Looks into an HDF5 file of a stranger: what `files.py` does, in a process of its own.

All functions also raise their error if the HDF5 library crashes or comes to no end.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import h5py

from ..errors import VectorsError, WeightsError
from .hdf5 import (
    MAX_BYTES,
    Floats,
    allowed_bytes,
    check_dataset,
    exists,
    find_dataset,
    list_names,
    open_hdf5,
    read_dataset,
    root_names,
    shape_of,
)
from .options import MAX_FILTERS, MAX_HIGHWAY, MAX_LAYERS, BiLMOptions
from .softmax import EXPECTED_SOFTMAX, MAX_CLUSTERS, holds_adaptive, read_adaptive, read_softmax
from .untrusted import Result, allow, ask
from .vectors import EXPECTED_VECTORS, INDEX_NAME, datasets_in, keyed_datasets, read_vectors
from .weights import TYPES, n_values, read_weights, weights_table

AnyPath = str | os.PathLike[str]
WEIGHTS, VECTORS_FILE, OUTPUT = "weights", "vectors", "softmax"
_GROUPS = ("softmax", "adaptive")


class VectorFacts(NamedTuple):
    """What a file of embedded sentences holds.

    n_sentences: number of sentences.
    first: shape of the first one's vectors; None if there is none.
    keyed: whether each dataset is named by its sentence.
    has_index: whether the file has the dataset sentence_to_index.
    """

    n_sentences: int
    first: tuple[int, ...] | None
    keyed: bool
    has_index: bool


def kind_of(path: AnyPath) -> str:
    """Return what an HDF5 file is: OUTPUT, VECTORS or else WEIGHTS. Raises WeightsError if it can't be read."""
    with open_hdf5(path, "weights, softmax or embedded sentences of a biLM", WeightsError) as file:
        if any(exists(file, name, WeightsError) for name in _GROUPS):
            return OUTPUT
        names = list_names(file, WeightsError)
        if any(name == INDEX_NAME or name.isdecimal() for name in names) or keyed_datasets(file):
            return VECTORS_FILE
        if names and _is_group_of_sentences(file, names[0]):
            return VECTORS_FILE  # which are not read: the error of VectorsError says so
    return WEIGHTS


def _is_group_of_sentences(file: h5py.File, name: str) -> bool:
    """Whether a name at the root is that of a group whose first dataset is called 0, as e2e-coref writes them."""
    is_own = file.get(name, getclass=True, getlink=True) is h5py.HardLink
    return is_own and file.get(name, getclass=True) is h5py.Group and exists(file, f"{name}/0", WeightsError)


def vectors_in(path: AnyPath) -> VectorFacts:
    """Return what a file of embedded sentences holds, after reading all of it. Raises VectorsError."""
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        keyed = bool(keyed_datasets(file))
        index = exists(file, INDEX_NAME, VectorsError)
    count, first = 0, None
    for _, array in read_vectors(path):
        first = first or array.shape
        count += 1
    return VectorFacts(count, first, keyed, index)


def shapes_in(path: AnyPath, allow: Callable[[int], None] | None = None) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of the main datasets of a weight file whose options are unknown.

    path: the weights.hdf5.
    allow: is called with the bytes of all their values before the values are checked; None: nothing is called.

    Raises WeightsError if a dataset can't be used, or if there is none.
    """
    with open_hdf5(path, "the weights.hdf5 of a biLM", WeightsError) as file:
        found = ((name, find_dataset(file, name, WeightsError)) for name in _main_names())
        datasets = [(name, dataset) for name, dataset in found if dataset is not None]
        if not datasets:
            raise WeightsError(
                f"{path}: missing datasets: {'char_embed'}. Expected the weights of a biLM with the sizes of its "
                f"options; at its root the file has {root_names(file)}."
            )
        if allow is not None:
            allow(sum(_n_bytes(dataset, name) for name, dataset in datasets))
        for name, dataset in datasets:
            check_dataset(dataset, name, WeightsError, TYPES)
        return [(name, dataset.shape) for name, dataset in datasets]


def read_output_layer(path: AnyPath, max_bytes: int = MAX_BYTES) -> tuple[list[int] | None, dict[str, Floats]]:
    """Read a softmax.hdf5 of either kind.

    path: the file.
    max_bytes: how much memory its values may take; four times the size of the file is always allowed.

    Returns the cutoffs and the parameters by name. The cutoffs are None if the softmax is not adaptive; then the
    parameters are weight, *Shape:* (words, projection_dim), and bias, *Shape:* (words,).
    Raises WeightsError if the file is missing, damaged or incomplete, or if its shapes do not fit each other.
    """
    if holds_adaptive(path):
        return read_adaptive(path, max_bytes)
    weight, bias = read_softmax(path, max_bytes)
    return None, {"weight": weight, "bias": bias}


def softmax_bytes(path: AnyPath) -> int:
    """Return how many bytes the parameters in a softmax.hdf5 take as float32. Raises WeightsError."""
    names = ["softmax/W", "softmax/b", "adaptive/weight", "adaptive/bias"]
    names += [f"adaptive/{part}/{i}" for part in ("down", "words") for i in range(MAX_CLUSTERS)]
    with open_hdf5(path, EXPECTED_SOFTMAX, WeightsError) as file:
        found = ((name, find_dataset(file, name, WeightsError)) for name in names)
        return sum(_n_bytes(dataset, name) for name, dataset in found if dataset is not None)


def _n_bytes(dataset: h5py.Dataset, name: str) -> int:
    """Return the bytes of a dataset's values as float32."""
    return 4 * math.prod(shape_of(dataset, name, WeightsError) or ())


def _main_names() -> list[str]:
    names = ["char_embed", "CNN_proj/W_proj", *(f"CNN/W_cnn_{i}" for i in range(MAX_FILTERS))]
    names += [f"CNN_high_{k}/W_carry" for k in range(MAX_HIGHWAY)]
    for direction in range(2):
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{{}}/LSTMCell"
        names += [f"{cell.format(k)}/{name}" for name in ("W_0", "W_P_0") for k in range(MAX_LAYERS)]
    return names


_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Return whether a file has HDF5's signature where HDF5 looks for it: at 0, 512, 1024, 2048 ... bytes.

    Returns False if there is no regular file, or if it can't be read.
    """
    if not path.is_file():
        return False
    with suppress(OSError), path.open("rb") as file:
        size, start = path.stat().st_size, 0
        while start < size:
            file.seek(start)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
            start = max(512, 2 * start)
    return False


def ask_kind(path: str | os.PathLike[str]) -> str:
    """Return what an HDF5 file is (see `files.kind_of`). Raises WeightsError."""
    return str(ask("kind", path, {}, WeightsError, 0).facts)


def ask_vectors(path: str | os.PathLike[str]) -> VectorFacts:
    """Return what a file of embedded sentences holds. Raises VectorsError."""
    n_sentences, first, keyed, has_index = ask("vectors", path, {}, VectorsError, allowed_bytes(path, 0)).facts
    return VectorFacts(n_sentences, None if first is None else tuple(first), keyed, has_index)


def ask_shapes(path: str | os.PathLike[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of the main datasets of a weight file. Raises WeightsError."""
    facts = ask("shapes", path, {}, WeightsError, allowed_bytes(path, MAX_BYTES)).facts
    return [(name, tuple(shape)) for name, shape in facts]


def ask_output_layer(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[list[int] | None, dict[str, Floats]]:
    """Read a softmax.hdf5 of either kind (see `files.read_output_layer`). Raises WeightsError."""
    answer = ask("softmax", path, {"max_bytes": max_bytes}, WeightsError, allowed_bytes(path, max_bytes))
    return answer.facts, answer.arrays


def check(path: Path) -> str:
    """Check an HDF5 file as far as it is possible without other files.

    path: weights or softmax of a biLM, or embedded sentences.

    Returns its kind. Raises ElmoError if it can't be used.
    """
    kind = ask_kind(path)
    if kind == VECTORS_FILE:
        ask_vectors(path)
    elif kind == OUTPUT:
        ask_output_layer(path)
    else:
        ask_shapes(path)
    return kind


# A part has at least one sentence, and else at most so many bytes of vectors, sentences, and characters of text.
_BYTES, _SENTENCES, _CHARACTERS = 2**26, 1000, 2**20


def read_part(
    path: str | os.PathLike[str], first: int, allow: Callable[[int], None]
) -> tuple[list[str | None], list[Floats]]:
    """Read some embedded sentences.

    path: the HDF5 file.
    first: number of the sentence to begin with.
    allow: is called with the bytes of all their vectors before the vectors are checked and read.

    Returns the texts, as `read_vectors` yields them, and the vectors; nothing after the last sentence. Raises
    VectorsError.
    """
    n_bytes = n_characters = 0
    found: list[tuple[str | None, str, h5py.Dataset]] = []
    with open_hdf5(path, EXPECTED_VECTORS, VectorsError) as file:
        for text, name, dataset in datasets_in(file, first):
            n_bytes += 4 * math.prod(shape_of(dataset, name, VectorsError) or ())
            n_characters += len(text or "")
            if found and (n_bytes > _BYTES or n_characters > _CHARACTERS or len(found) == _SENTENCES):
                break
            found.append((text, name, dataset))
        allow(n_bytes)
        for _, name, dataset in found:
            check_dataset(dataset, name, VectorsError)
        return [text for text, *_ in found], [read_dataset(dataset, name, VectorsError) for _, name, dataset in found]


def weights(path: str, options: dict[str, Any], max_bytes: int) -> Result:
    """Read a weight file. options: the contents of an options.json. path, max_bytes: as in `read_weights`."""
    sizes = BiLMOptions.from_dict(options)
    n_bytes = 4 * n_values(weights_table(sizes, True, True))
    allow(min(n_bytes, allowed_bytes(path, max_bytes)))
    return Result(None, read_weights(path, sizes, max_bytes=max_bytes))


def softmax(path: str, max_bytes: int) -> Result:
    """Read a softmax file; the fact is the list of its cutoffs. path, max_bytes: as in `read_output_layer`."""
    allow(min(softmax_bytes(path), allowed_bytes(path, max_bytes)))
    return Result(*read_output_layer(path, max_bytes))


def kind(path: str) -> Result:
    """Return the kind of a file (see `kind_of`)."""
    allow(allowed_bytes(path, 0))
    return Result(kind_of(path))


def vectors(path: str) -> Result:
    """Return what a file of embedded sentences holds (see `vectors_in`)."""
    allow(allowed_bytes(path, 0))
    return Result(vectors_in(path))


def sentences(path: str, first: int) -> Result:
    """Return some embedded sentences; the fact is the list of their texts. path, first: as in `read_part`."""
    allowed = allowed_bytes(path, 0)
    allow(allowed)
    texts, vectors = read_part(
        path, first, lambda n_bytes: allow(max(allowed, min(n_bytes, allowed_bytes(path, MAX_BYTES))))
    )
    return Result(texts, {str(number): array for number, array in enumerate(vectors)})


def shapes(path: str) -> Result:
    """Return the main datasets of a weight file (see `shapes_in`)."""
    return Result(shapes_in(path, allow))
