"""The softmax.hdf5 of a biLM's output layer, full or sampled or adaptive, which the official weights.hdf5 lacks."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, WeightsError, listed
from .hdf5 import (
    MAX_BYTES,
    Floats,
    check_bytes,
    check_dataset,
    check_storage,
    find,
    find_datasets,
    open_hdf5,
    read_dataset,
    write_hdf5,
)

WEIGHT, BIAS = "softmax/W", "softmax/b"
EXPECTED_SOFTMAX = "the softmax.hdf5 of a biLM"


def read_softmax(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> tuple[Floats, Floats]:
    """Read a full or sampled softmax: weight, *Shape:* (words, projection_dim), and bias, (words,), float32."""
    with open_hdf5(path, EXPECTED_SOFTMAX, WeightsError) as file:
        datasets = find_datasets(file, (WEIGHT, BIAS), "softmax/W and softmax/b")
        _check_shapes(datasets[WEIGHT].shape, datasets[BIAS].shape, str(path))
        weight, bias = _read(datasets, path, max_bytes)
        return weight, bias


def write_softmax(
    path: str | os.PathLike[str],
    weight: npt.NDArray[np.floating],
    bias: npt.NDArray[np.floating],
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write a full or sampled softmax atomically, as float32, or as float16 for half the size."""
    arrays = _stored({WEIGHT: weight, BIAS: bias}, path, dtype)
    _check_shapes(weight.shape, bias.shape, f"{path}: not written")
    write_hdf5(path, arrays.items(), WeightsError, compress=compress)


def _check_shapes(weight: tuple[int, ...] | None, bias: tuple[int, ...] | None, source: str) -> None:
    if weight is None or len(weight) != 2 or min(weight) < 1 or bias != weight[:1]:
        raise WeightsError(
            f"{source}: softmax/W has shape {weight} and softmax/b {bias}. Expected (words, projection_dim) and "
            "(words,), with at least one word and one dimension."
        )


def _read(datasets: Mapping[str, h5py.Dataset], path: str | os.PathLike[str], max_bytes: int) -> list[Floats]:
    """Check datasets, alone and together, and return their values."""
    n_bytes = sum(4 * math.prod(dataset.shape) for dataset in datasets.values())
    check_bytes(n_bytes, path, "the softmax", max_bytes)
    for dataset in datasets.values():
        check_dataset(dataset, ("float32", "float16"), max_bytes)
    return [read_dataset(dataset) for dataset in datasets.values()]


def _stored(
    arrays: Mapping[str, npt.NDArray[np.floating]], path: str | os.PathLike[str], dtype: npt.DTypeLike
) -> dict[str, npt.NDArray[Any]]:
    """Return values in the little-endian type of the file. Raises WeightsError if it can't hold them."""
    stored, result = np.dtype(dtype), {}
    for name, values in arrays.items():
        with np.errstate(over="ignore"):  # a value that overflows raises below
            result[name] = values.astype(stored.newbyteorder("<"))
        if n_bad := int(values.size - np.isfinite(result[name]).sum()):
            raise WeightsError(
                f"{path}: not written: {name} has {n_bad} values that are NaN, infinite or too large for {stored}. "
                "Expected none."
            )
    return result


GROUP, CUTOFFS = "adaptive", "adaptive/cutoffs"
# Each cluster's vectors have a quarter of the width of the cluster before: the default of the paper and of torch.
DIVISOR = 4
# Vectors of a 16th cluster need a projection_dim of 4 ** 16.
MAX_CLUSTERS = 16
_EXPECTED = "adaptive/cutoffs, and with it the weight, bias, down and words of an adaptive softmax"


def adaptive_shapes(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of an adaptive softmax by its name.

    The parameters are `weight` and `bias`, with a row for each frequent word and then one for each cluster, and for
    each cluster i `down.i`, (width, projection_dim), and `words.i`, (words of the cluster, width).

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
        return find(file, GROUP) is not None


def read_adaptive(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> tuple[list[int], dict[str, Floats]]:
    """Read an adaptive softmax. Returns the cutoffs and the parameters by name, float32 (see `adaptive_shapes`)."""
    with open_hdf5(path, EXPECTED_SOFTMAX, WeightsError) as file:
        if find(file, "softmax") is not None:
            raise ElmoError(
                f"{path}: holds both softmax and adaptive. Expected one output layer: delete the other group."
            )
        cutoffs = _read_cutoffs(file)
        names = {_dataset_name(name): name for name in adaptive_shapes(cutoffs[-1], 1, cutoffs)}
        datasets = find_datasets(file, names, _EXPECTED)
        beyond = [f"{GROUP}/{part}/{len(cutoffs)}" for part in ("down", "words")]
        problems = [f"{name} is beyond the clusters" for name in beyond if find(file, name) is not None]
        shapes = {names[name]: dataset.shape for name, dataset in datasets.items()}
        _check_adaptive(shapes, cutoffs, str(path), problems)
        return cutoffs, dict(zip(names.values(), _read(datasets, path, max_bytes)))


def write_adaptive(
    path: str | os.PathLike[str],
    cutoffs: Sequence[int],
    arrays: Mapping[str, npt.NDArray[np.floating]],
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write an adaptive softmax as `write_softmax` does: its cutoffs, and the parameters of `adaptive_shapes`."""
    _check_adaptive({name: values.shape for name, values in arrays.items()}, cutoffs, f"{path}: not written")
    stored = _stored({_dataset_name(name): values for name, values in arrays.items()}, path, dtype)
    write_hdf5(path, ({CUTOFFS: np.array(cutoffs, "<i8")} | stored).items(), WeightsError, compress=compress)


def _dataset_name(name: str) -> str:
    return f"{GROUP}/{name.replace('.', '/')}"


def _read_cutoffs(file: h5py.File) -> list[int]:
    dataset = find_datasets(file, [CUTOFFS], _EXPECTED)[CUTOFFS]
    got: object = f"of shape {dataset.shape}"
    fits = dataset.shape is not None and len(dataset.shape) == 1 and 0 < dataset.shape[0] <= MAX_CLUSTERS
    if fits and dataset.id.get_type() in (h5py.h5t.STD_I64LE, h5py.h5t.STD_I64BE):
        check_storage(dataset, 8)
        cutoffs: list[int] = dataset[...].tolist()
        if cutoffs[0] > 0 and all(a < b for a, b in pairwise(cutoffs)):
            return cutoffs
        got = cutoffs
    raise ElmoError(
        f"{file.filename}: adaptive/cutoffs is {got}. Expected up to 16 numbers of int64 above 0, each larger than the "
        "one before: where the clusters of words begin."
    )


def _check_adaptive(
    shapes: Mapping[str, tuple[int, ...] | None], cutoffs: Sequence[int], source: str, problems: Sequence[str] = ()
) -> None:
    weight, last = shapes.get("weight"), shapes.get(f"words.{len(cutoffs) - 1}")
    projection_dim = weight[1] if weight is not None and len(weight) == 2 else 0
    n_words = cutoffs[-1] + (last[0] if last else 0)
    expected = adaptive_shapes(n_words, projection_dim, cutoffs)
    problems = [
        *(
            f"{_dataset_name(name)} has shape {shapes.get(name)}, expected {expected.get(name)}"
            for name in dict.fromkeys([*expected, *shapes])
            if shapes.get(name) != expected.get(name) or not all(expected[name])
        ),
        *problems,
    ]
    if problems:
        raise WeightsError(
            f"{source}: the arrays of the adaptive softmax do not fit its cutoffs {list(cutoffs)}: "
            f"{listed(problems, '; ')}. Expected a row for each word and cluster, and in each cluster a quarter "
            "of the width of the one before, at least 1."
        )
