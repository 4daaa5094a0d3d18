"""Looks into an HDF5 file: its kind, and what an overview tells of it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import NamedTuple

import h5py

from ...errors import Errors, VectorsError, WeightsError
from ..adaptive_file import MAX_CLUSTERS, holds_adaptive, read_adaptive
from ..hdf5_checks import Floats, check_dataset, exists, find_dataset, list_names, open_hdf5, root_names, shape_of
from ..hdf5_storage import MAX_BYTES
from ..hdf5_vectors import INDEX_NAME, keyed_datasets, read_vectors
from ..options_checks import MAX_FILTERS, MAX_HIGHWAY, MAX_LAYERS
from ..softmax_file import EXPECTED, read_softmax
from ..weights.hdf5 import TYPES

Path = str | os.PathLike[str]
WEIGHTS, VECTORS, OUTPUT = "weights", "vectors", "softmax"
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


def kind_of(path: Path) -> str:
    """Return what an HDF5 file is: OUTPUT, VECTORS or else WEIGHTS. Raises WeightsError if it can't be read."""
    with open_hdf5(path, "weights, softmax or embedded sentences of a biLM", WeightsError) as file:
        if any(exists(file, name, WeightsError) for name in _GROUPS):
            return OUTPUT
        names = list_names(file, WeightsError)
        if any(name == INDEX_NAME or name.isdecimal() for name in names) or keyed_datasets(file):
            return VECTORS
        if names and _is_group_of_sentences(file, names[0]):
            return VECTORS  # which are not read: the error of VectorsError says so
    return WEIGHTS


def _is_group_of_sentences(file: h5py.File, name: str) -> bool:
    """Whether a name at the root is that of a group whose first dataset is called 0, as e2e-coref writes them."""
    is_own = file.get(name, getclass=True, getlink=True) is h5py.HardLink
    return is_own and file.get(name, getclass=True) is h5py.Group and exists(file, f"{name}/0", WeightsError)


def vectors_in(path: Path) -> VectorFacts:
    """Return what a file of embedded sentences holds, after reading all of it. Raises VectorsError."""
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        keyed = bool(keyed_datasets(file))
        index = exists(file, INDEX_NAME, VectorsError)
    count, first = 0, None
    for _, array in read_vectors(path):
        first = first or array.shape
        count += 1
    return VectorFacts(count, first, keyed, index)


def shapes_in(path: Path, allow: Callable[[int], None] | None = None) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of the main datasets of a weight file whose options are unknown.

    path: the weights.hdf5.
    allow: is called with the bytes of all their values before the values are checked; None: nothing is called.

    Raises WeightsError if a dataset can't be used, or if there is none.
    """
    with open_hdf5(path, "the weights.hdf5 of a biLM", WeightsError) as file:
        found = ((name, find_dataset(file, name, WeightsError)) for name in _main_names())
        datasets = [(name, dataset) for name, dataset in found if dataset is not None]
        if not datasets:
            message = Errors.WEIGHTS_MISSING
            raise WeightsError(message.format(path=path, missing="char_embed", found=root_names(file)))
        if allow is not None:
            allow(sum(_n_bytes(dataset, name) for name, dataset in datasets))
        for name, dataset in datasets:
            check_dataset(dataset, name, WeightsError, TYPES)
        return [(name, dataset.shape) for name, dataset in datasets]


def read_output_layer(path: Path, max_bytes: int = MAX_BYTES) -> tuple[list[int] | None, dict[str, Floats]]:
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


def softmax_bytes(path: Path) -> int:
    """Return how many bytes the parameters in a softmax.hdf5 take as float32. Raises WeightsError."""
    names = ["softmax/W", "softmax/b", "adaptive/weight", "adaptive/bias"]
    names += [f"adaptive/{part}/{i}" for part in ("down", "words") for i in range(MAX_CLUSTERS)]
    with open_hdf5(path, EXPECTED, WeightsError) as file:
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
