"""softmax.hdf5 of an adaptive softmax (Grave et al. 2017): clusters of words, the rarer ones with narrower vectors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import Errors, WeightsError
from .atomic import write_hdf5
from .hdf5_checks import Floats, exists, find_dataset, open_hdf5, read_dataset, reading, root_names, shape_of
from .hdf5_storage import check_storage
from .softmax_file import EXPECTED, check_stored, stored_type, stored_values
from .weights.checks import listed

GROUP, CUTOFFS = "adaptive", "cutoffs"
DIVISOR = 4  # each cluster's vectors have a quarter of the width before, the paper's and torch's choice
_MAX_CLUSTERS = 16  # the last one's vectors would need a projection_dim of 4 ** 16
_INT64 = (h5py.h5t.STD_I64LE, h5py.h5t.STD_I64BE)


def adaptive_shapes(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """The shape of each parameter, by its name.

    weight, bias: a row for each word below the first cutoff, then one for each cluster. Of cluster i, the words from
    cutoff i to the next: down.i, (width, projection_dim), and words.i, (words, width).
    """
    head = cutoffs[0] + len(cutoffs)
    shapes: dict[str, tuple[int, ...]] = {"weight": (head, projection_dim), "bias": (head,)}
    for i, (start, stop) in enumerate(pairwise([*cutoffs, n_words])):
        width = projection_dim // DIVISOR ** (i + 1)
        shapes |= {f"down.{i}": (width, projection_dim), f"words.{i}": (stop - start, width)}
    return shapes


def holds_adaptive(path: str | os.PathLike[str]) -> bool:
    """Whether a softmax.hdf5 is an adaptive softmax's. Raises WeightsError for what is no HDF5 file."""
    with open_hdf5(path, EXPECTED, WeightsError) as file:
        return exists(file, GROUP, WeightsError)


def read_adaptive(path: str | os.PathLike[str]) -> tuple[list[int], dict[str, Floats]]:
    """The cutoffs, and the parameters by name as float32, stored as float32 or float16; see adaptive_shapes.

    Raises WeightsError for a file that is missing, damaged, incomplete, or of other shapes.
    """
    with open_hdf5(path, EXPECTED, WeightsError) as file:
        if exists(file, "softmax", WeightsError):
            raise WeightsError(Errors.ADAPTIVE_BOTH.format(path=path))
        cutoffs = _read_cutoffs(file)
        names = list(adaptive_shapes(cutoffs[-1], 1, cutoffs))
        found = {name: find_dataset(file, _dataset(name), WeightsError) for name in names}
        datasets = {name: dataset for name, dataset in found.items() if dataset is not None}
        if missing := [_dataset(name) for name in found if name not in datasets]:
            raise _missing(file, listed(missing))
        shapes = {name: shape_of(dataset, _dataset(name), WeightsError) for name, dataset in datasets.items()}
        _check_shapes(shapes, cutoffs, str(path))
        for beyond in (_dataset(f"{part}.{len(cutoffs)}") for part in ("down", "words")):
            if exists(file, beyond, WeightsError):
                problems = f"{beyond} is beyond the clusters"
                raise WeightsError(Errors.ADAPTIVE_SHAPES.format(source=path, cutoffs=cutoffs, problems=problems))
        for name, dataset in datasets.items():
            check_stored(dataset, _dataset(name))
        return cutoffs, {
            name: read_dataset(dataset, _dataset(name), WeightsError) for name, dataset in datasets.items()
        }


def write_adaptive(
    path: str | os.PathLike[str],
    cutoffs: Sequence[int],
    arrays: Mapping[str, npt.NDArray[np.floating]],
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write an adaptive softmax, whole or not at all. arrays: by parameter name; see adaptive_shapes.

    dtype: float32, or float16 for a file of half the size. compress: by HDF5's filters shuffle and gzip.
    Raises WeightsError for arrays of other shapes, and for values that are not finite in that type.
    """
    stored = stored_type(path, dtype)
    _check_shapes({name: values.shape for name, values in arrays.items()}, list(cutoffs), f"{path}: not written")
    datasets: dict[str, npt.NDArray[np.generic]] = {_dataset(CUTOFFS): np.array(cutoffs, "<i8")}
    for name, values in arrays.items():
        datasets[_dataset(name)] = stored_values(path, _dataset(name), values, stored)
    write_hdf5(path, datasets.items(), WeightsError, compress=compress)


def _dataset(name: str) -> str:
    return f"{GROUP}/{name.replace('.', '/')}"


def _missing(file: h5py.File, names: str) -> WeightsError:
    return WeightsError(Errors.ADAPTIVE_MISSING.format(path=file.filename, missing=names, found=root_names(file)))


def _read_cutoffs(file: h5py.File) -> list[int]:
    name, path = _dataset(CUTOFFS), file.filename
    dataset = find_dataset(file, name, WeightsError)
    if dataset is None:
        raise _missing(file, name)
    shape = shape_of(dataset, name, WeightsError)
    with reading(path, name, WeightsError):
        fits = shape is not None and len(shape) == 1 and 0 < shape[0] <= _MAX_CLUSTERS
        if not fits or dataset.id.get_type() not in _INT64:
            raise WeightsError(Errors.ADAPTIVE_CUTOFFS.format(path=path, got=f"of shape {shape}"))
        check_storage(dataset, 8, name, WeightsError)
        cutoffs: list[int] = dataset[...].tolist()
    if cutoffs[0] < 1 or any(a >= b for a, b in pairwise(cutoffs)):
        raise WeightsError(Errors.ADAPTIVE_CUTOFFS.format(path=path, got=cutoffs))
    return cutoffs


def _check_shapes(shapes: Mapping[str, tuple[int, ...] | None], cutoffs: Sequence[int], source: str) -> None:
    weight, last = shapes.get("weight"), shapes.get(f"words.{len(cutoffs) - 1}")
    projection_dim = weight[1] if weight is not None and len(weight) == 2 else 0
    n_words = cutoffs[-1] + (last[0] if last else 0)
    expected = adaptive_shapes(n_words, projection_dim, cutoffs)
    problems = [
        f"{_dataset(name)} has shape {shapes.get(name)}, expected {expected.get(name)}"
        for name in [*expected, *(name for name in shapes if name not in expected)]
        if shapes.get(name) != expected.get(name) or not all(expected[name])
    ]
    if problems:
        message = Errors.ADAPTIVE_SHAPES
        raise WeightsError(message.format(source=source, cutoffs=list(cutoffs), problems=listed(problems, "; ")))
