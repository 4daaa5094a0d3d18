"""The softmax.hdf5 of a full or sampled softmax: a biLM's output layer, which the official weights.hdf5 lacks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import WeightsError
from .atomic import write_hdf5
from .hdf5 import (
    MAX_BYTES,
    Floats,
    check_bytes,
    check_dataset,
    check_storage,
    exists,
    find_dataset,
    open_hdf5,
    read_dataset,
    reading,
    root_names,
    shape_of,
)
from .weights import listed

WEIGHT, BIAS = "softmax/W", "softmax/b"
EXPECTED_SOFTMAX = "the softmax.hdf5 of a biLM"
_HALF = (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE)


def read_softmax(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> tuple[Floats, Floats]:
    """Read a softmax, stored as float32 or float16.

    path: the softmax.hdf5.
    max_bytes: how much memory its values may take; four times the size of the file is always allowed.

    Returns the weight, *Shape:* (words, projection_dim), and the bias, *Shape:* (words,), both float32.
    Raises WeightsError if the file is missing, damaged or incomplete, or if its shapes do not fit each other.
    """
    with open_hdf5(path, EXPECTED_SOFTMAX, WeightsError) as file:
        candidates = {name: find_dataset(file, name, WeightsError) for name in (WEIGHT, BIAS)}
        datasets = {name: dataset for name, dataset in candidates.items() if dataset is not None}
        if missing := [name for name in candidates if name not in datasets]:
            raise WeightsError(
                f"{path}: missing datasets: {', '.join(missing)}. Expected softmax/W and softmax/b; at its root "
                f"the file has {root_names(file)}."
            )
        weight, bias = (shape_of(dataset, name, WeightsError) for name, dataset in datasets.items())
        _check_shapes(weight, bias, str(path))
        check_softmax_bytes([shape for shape in (weight, bias) if shape], path, max_bytes)
        for name, dataset in datasets.items():
            check_softmax_dataset(dataset, name, max_bytes)
        return (
            read_dataset(datasets[WEIGHT], WEIGHT, WeightsError),
            read_dataset(datasets[BIAS], BIAS, WeightsError),
        )


def write_softmax(
    path: str | os.PathLike[str],
    weight: npt.NDArray[np.floating],
    bias: npt.NDArray[np.floating],
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write a softmax atomically.

    path: the softmax.hdf5.
    weight: *Shape:* (words, projection_dim).
    bias: *Shape:* (words,).
    dtype: type of the values in the file: float32, or float16 for half the size.
    compress: whether to use HDF5's filters shuffle and gzip.

    Raises WeightsError if the shapes do not fit each other, if values are not finite in `dtype`, or if the file can't
    be written.
    """
    stored = checked_dtype(path, dtype)
    _check_shapes(weight.shape, bias.shape, f"{path}: not written")
    arrays = {name: to_stored_values(path, name, values, stored) for name, values in ((WEIGHT, weight), (BIAS, bias))}
    write_hdf5(path, arrays.items(), WeightsError, compress=compress)


def checked_dtype(path: str | os.PathLike[str], dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the type as numpy's. Raises WeightsError, which names `path`, if it is neither float32 nor float16."""
    stored = np.dtype(dtype)
    if stored not in (np.float32, np.float16):
        raise WeightsError(f"{path}: not written: dtype is {stored}. Expected float32 or float16.")
    return stored


def to_stored_values(
    path: str | os.PathLike[str], name: str, values: npt.NDArray[np.floating], stored: np.dtype[Any]
) -> npt.NDArray[np.floating]:
    """Convert values to little-endian `stored`, the type of a file.

    path, name: of the file and the dataset, for messages.
    values: of any shape and floating-point type.

    Raises WeightsError if the values are not of a floating-point type, or not finite in the type of the file.
    """
    if values.dtype.kind != "f":
        raise WeightsError(
            "{source}: {name} is {got}. Expected a numpy array of float32, float16 or float64.".format(
                source=f"{path}: not written", name=name, got=values.dtype
            )
        )
    with np.errstate(over="ignore"):  # a value that overflows raises below
        result = values.astype(stored.newbyteorder("<"))
    if n_bad := int(values.size - np.isfinite(result).sum()):
        raise WeightsError(
            f"{path}: not written: {name} has {n_bad} values that are NaN, infinite or too large for {stored}. "
            "Expected none."
        )
    return result


def _check_shapes(weight: tuple[int, ...] | None, bias: tuple[int, ...] | None, source: str) -> None:
    fits = weight is not None and len(weight) == 2 and min(weight) > 0 and bias == weight[:1]
    if not fits:
        raise WeightsError(
            f"{source}: softmax/W has shape {weight} and softmax/b {bias}. Expected (words, projection_dim) and "
            "(words,), with at least one word and one dimension."
        )


def check_softmax_bytes(shapes: Iterable[tuple[int, ...]], path: str | os.PathLike[str], max_bytes: int) -> None:
    """Raise WeightsError if float32 arrays of these shapes take more bytes together than `allowed_bytes`."""
    check_bytes(sum(4 * math.prod(shape) for shape in shapes), path, "the softmax", WeightsError, max_bytes)


def check_softmax_dataset(dataset: h5py.Dataset, name: str, max_bytes: int = MAX_BYTES) -> None:
    """Check that a dataset holds float16 or float32 values in its own file.

    max_bytes: how much memory they may take (see `allowed_bytes`).

    Raises WeightsError.
    """
    with reading(dataset.file.filename, name, WeightsError):
        half = dataset.id.get_type() in _HALF
        if half:
            check_storage(dataset, 2, name, WeightsError, max_bytes)
    if not half:
        check_dataset(dataset, name, WeightsError, max_bytes=max_bytes)


GROUP, CUTOFFS = "adaptive", "cutoffs"
# Each cluster's vectors have a quarter of the width of the cluster before: the default of the paper and of torch.
DIVISOR = 4
# Vectors of a 16th cluster need a projection_dim of 4 ** 16.
MAX_CLUSTERS = 16
_INT64 = (h5py.h5t.STD_I64LE, h5py.h5t.STD_I64BE)


def adaptive_shapes(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter by its name.

    The parameters are `weight` and `bias`, with a row for each frequent word and then one for each cluster, and for
    each cluster i `down.i`, (width, projection_dim), and `words.i`, (words of the cluster, width).

    n_words: size of the vocabulary.
    projection_dim: width of the vectors that are multiplied by `weight`.
    cutoffs: rank of the first word of each cluster, counted from 0, in rising order.
    """
    head = cutoffs[0] + len(cutoffs)
    shapes: dict[str, tuple[int, ...]] = {"weight": (head, projection_dim), "bias": (head,)}
    for i, (start, stop) in enumerate(pairwise([*cutoffs, n_words])):
        width = projection_dim // DIVISOR ** (i + 1)
        shapes |= {f"down.{i}": (width, projection_dim), f"words.{i}": (stop - start, width)}
    return shapes


def holds_adaptive(path: str | os.PathLike[str]) -> bool:
    """Whether a softmax.hdf5 holds an adaptive softmax. Raises WeightsError if it is not an HDF5 file."""
    with open_hdf5(path, EXPECTED_SOFTMAX, WeightsError) as file:
        return exists(file, GROUP, WeightsError)


def read_adaptive(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> tuple[list[int], dict[str, Floats]]:
    """Read an adaptive softmax, stored as float32 or float16.

    path: the softmax.hdf5.
    max_bytes: how much memory its values may take; four times the size of the file is always allowed.

    Returns the cutoffs and the parameters by name, float32 (see `adaptive_shapes`).
    Raises WeightsError if the file is missing, damaged or incomplete, or if its shapes do not fit each other.
    """
    with open_hdf5(path, EXPECTED_SOFTMAX, WeightsError) as file:
        if exists(file, "softmax", WeightsError):
            raise WeightsError(
                f"{path}: holds both softmax and adaptive. Expected one output layer: delete the other group."
            )
        cutoffs = _read_cutoffs(file)
        names = list(adaptive_shapes(cutoffs[-1], 1, cutoffs))
        candidates = {name: find_dataset(file, _dataset_name(name), WeightsError) for name in names}
        datasets = {name: dataset for name, dataset in candidates.items() if dataset is not None}
        if missing := [_dataset_name(name) for name in candidates if name not in datasets]:
            raise _missing_error(file, listed(missing))
        shapes = {name: shape_of(dataset, _dataset_name(name), WeightsError) for name, dataset in datasets.items()}
        _check_adaptive_shapes(shapes, cutoffs, str(path))
        check_softmax_bytes([shape for shape in shapes.values() if shape], path, max_bytes)
        for beyond in (_dataset_name(f"{part}.{len(cutoffs)}") for part in ("down", "words")):
            if exists(file, beyond, WeightsError):
                problems = f"{beyond} is beyond the clusters"
                raise WeightsError(
                    f"{path}: the arrays of the adaptive softmax do not fit its cutoffs {cutoffs}: {problems}. "
                    "Expected a row for each word and cluster, and in each cluster a quarter of the width of the "
                    "one before, at least 1."
                )
        for name, dataset in datasets.items():
            check_softmax_dataset(dataset, _dataset_name(name), max_bytes)
        return cutoffs, {
            name: read_dataset(dataset, _dataset_name(name), WeightsError) for name, dataset in datasets.items()
        }


def write_adaptive(
    path: str | os.PathLike[str],
    cutoffs: Sequence[int],
    arrays: Mapping[str, npt.NDArray[np.floating]],
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write an adaptive softmax atomically.

    path: the softmax.hdf5.
    cutoffs: rank of the first word of each cluster, counted from 0, in rising order.
    arrays: the parameters by name (see `adaptive_shapes`).
    dtype: type of the values in the file: float32, or float16 for half the size.
    compress: whether to use HDF5's filters shuffle and gzip.

    Raises WeightsError if the shapes do not fit each other, if values are not finite in `dtype`, or if the file can't
    be written.
    """
    stored = checked_dtype(path, dtype)
    _check_adaptive_shapes(
        {name: values.shape for name, values in arrays.items()}, list(cutoffs), f"{path}: not written"
    )
    datasets: dict[str, npt.NDArray[np.generic]] = {_dataset_name(CUTOFFS): np.array(cutoffs, "<i8")}
    for name, values in arrays.items():
        datasets[_dataset_name(name)] = to_stored_values(path, _dataset_name(name), values, stored)
    write_hdf5(path, datasets.items(), WeightsError, compress=compress)


def _dataset_name(name: str) -> str:
    """Return the path of a parameter's dataset in the file."""
    return f"{GROUP}/{name.replace('.', '/')}"


def _missing_error(file: h5py.File, names: str) -> WeightsError:
    return WeightsError(
        f"{file.filename}: missing datasets: {names}. Expected adaptive/cutoffs, and with it the weight, bias, "
        f"down and words of an adaptive softmax; at its root the file has {root_names(file)}."
    )


def _read_cutoffs(file: h5py.File) -> list[int]:
    name, path = _dataset_name(CUTOFFS), file.filename
    dataset = find_dataset(file, name, WeightsError)
    if dataset is None:
        raise _missing_error(file, name)
    shape = shape_of(dataset, name, WeightsError)
    with reading(path, name, WeightsError):
        fits = shape is not None and len(shape) == 1 and 0 < shape[0] <= MAX_CLUSTERS
        if not fits or dataset.id.get_type() not in _INT64:
            raise WeightsError(
                (
                    "{path}: adaptive/cutoffs is {got}. Expected up to 16 numbers of int64 above 0, each larger than "
                    "the one before: where the clusters of words begin."
                ).format(path=path, got=f"of shape {shape}")
            )
        check_storage(dataset, 8, name, WeightsError)
        cutoffs: list[int] = dataset[...].tolist()
    if cutoffs[0] < 1 or any(a >= b for a, b in pairwise(cutoffs)):
        raise WeightsError(
            f"{path}: adaptive/cutoffs is {cutoffs}. Expected up to 16 numbers of int64 above 0, each larger than "
            "the one before: where the clusters of words begin."
        )
    return cutoffs


def _check_adaptive_shapes(shapes: Mapping[str, tuple[int, ...] | None], cutoffs: Sequence[int], source: str) -> None:
    weight, last = shapes.get("weight"), shapes.get(f"words.{len(cutoffs) - 1}")
    projection_dim = weight[1] if weight is not None and len(weight) == 2 else 0
    n_words = cutoffs[-1] + (last[0] if last else 0)
    expected = adaptive_shapes(n_words, projection_dim, cutoffs)
    problems = [
        f"{_dataset_name(name)} has shape {shapes.get(name)}, expected {expected.get(name)}"
        for name in [*expected, *(name for name in shapes if name not in expected)]
        if shapes.get(name) != expected.get(name) or not all(expected[name])
    ]
    if problems:
        raise WeightsError(
            f"{source}: the arrays of the adaptive softmax do not fit its cutoffs {list(cutoffs)}: "
            f"{listed(problems, '; ')}. Expected a row for each word and cluster, and in each cluster a quarter "
            "of the width of the one before, at least 1."
        )
