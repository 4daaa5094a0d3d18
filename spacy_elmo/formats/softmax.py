"""The softmax.hdf5 of a biLM's output layer, full or sampled or adaptive, which the official weights.hdf5 lacks.

Its parameters are `weight` and `bias`, with a row for each word: the datasets softmax/W and softmax/b. If it is
adaptive, they have a row for each frequent word, and then one for each cluster of the other words. All its datasets are
in the group adaptive, with the cutoffs: the rank of the first word of each cluster, counted from 0, in rising order.
"""

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
    all_there,
    check_bytes,
    check_dataset,
    check_storage,
    find,
    find_dataset,
    open_hdf5,
    read_dataset,
    write_hdf5,
)

_FULL = {"weight": "softmax/W", "bias": "softmax/b"}
CUTOFFS = "adaptive/cutoffs"
# Each cluster's vectors have a quarter of the width of the cluster before: the default of the paper and of torch.
DIVISOR = 4
# Vectors of a 16th cluster need a projection_dim of 4 ** 16.
MAX_CLUSTERS = 16


def adaptive_shapes(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of an adaptive softmax by its name.

    Beside `weight` and `bias` each cluster i has `down.i`, (width, projection_dim), and `words.i`, (words of the
    cluster, width).
    """
    head = cutoffs[0] + len(cutoffs)
    shapes: dict[str, tuple[int, ...]] = {"weight": (head, projection_dim), "bias": (head,)}
    for i, (start, stop) in enumerate(pairwise([*cutoffs, n_words])):
        width = projection_dim // DIVISOR ** (i + 1)
        shapes |= {f"down.{i}": (width, projection_dim), f"words.{i}": (stop - start, width)}
    return shapes


def read_softmax(
    path: str | os.PathLike[str], max_bytes: int = MAX_BYTES
) -> tuple[list[int] | None, dict[str, Floats]]:
    """Read the cutoffs, None if the softmax is not adaptive, and the parameters by name, float32."""
    with open_hdf5(path, "the softmax.hdf5 of a biLM", WeightsError) as file:
        cutoffs = None if find(file, "adaptive") is None else _read_cutoffs(file)
        parameters = adaptive_shapes(cutoffs[-1], 1, cutoffs) if cutoffs else _FULL
        names = {_dataset(name, cutoffs): name for name in parameters}
        found = {dataset: find_dataset(file, dataset) for dataset in names}
        datasets = all_there(file, found, "those of a full or of an adaptive softmax")
        shapes = {names[name]: dataset.shape for name, dataset in datasets.items()}
        for name in (f"{part}.{len(cutoffs)}" for part in ("down", "words") if cutoffs):
            beyond = find_dataset(file, _dataset(name, cutoffs))
            if beyond is not None:
                shapes[name] = beyond.shape
        _check_shapes(shapes, cutoffs, str(path))
        n_bytes = sum(4 * math.prod(dataset.shape) for dataset in datasets.values())
        check_bytes(n_bytes, path, "the softmax", max_bytes)
        for dataset in datasets.values():
            check_dataset(dataset, ("float32", "float16"), max_bytes)
        return cutoffs, {names[name]: read_dataset(dataset) for name, dataset in datasets.items()}


def write_softmax(
    path: str | os.PathLike[str],
    arrays: Mapping[str, npt.NDArray[np.floating]],
    cutoffs: Sequence[int] | None = None,
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write parameters by name atomically, as float32, or as float16 for half the size."""
    _check_shapes({name: values.shape for name, values in arrays.items()}, cutoffs, f"{path}: not written")
    stored = np.dtype(dtype)
    datasets: dict[str, npt.NDArray[Any]] = {} if cutoffs is None else {CUTOFFS: np.array(cutoffs, "<i8")}
    for name, values in arrays.items():
        dataset = _dataset(name, cutoffs)
        with np.errstate(over="ignore"):  # a value that overflows raises below
            datasets[dataset] = values.astype(stored.newbyteorder("<"))
        if n_bad := int(values.size - np.isfinite(datasets[dataset]).sum()):
            raise WeightsError(
                f"{path}: not written: {dataset} has {n_bad} values that are NaN, infinite or too large for {stored}. "
                "Expected none."
            )
    write_hdf5(path, datasets.items(), WeightsError, compress=compress)


def _dataset(name: str, cutoffs: Sequence[int] | None) -> str:
    return _FULL.get(name, name) if cutoffs is None else f"adaptive/{name.replace('.', '/')}"


def _read_cutoffs(file: h5py.File) -> list[int]:
    dataset = all_there(file, {CUTOFFS: find_dataset(file, CUTOFFS)}, "where the clusters of words begin")[CUTOFFS]
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


def _check_shapes(shapes: Mapping[str, tuple[int, ...] | None], cutoffs: Sequence[int] | None, source: str) -> None:
    weight = shapes.get("weight")
    n_rows, projection_dim = weight if weight is not None and len(weight) == 2 else (0, 0)
    if cutoffs is None:
        expected: dict[str, tuple[int, ...]] = {"weight": (n_rows, projection_dim), "bias": (n_rows,)}
        rule = "(words, projection_dim) and (words,), with at least one word and one dimension"
    else:
        last = shapes.get(f"words.{len(cutoffs) - 1}")
        expected = adaptive_shapes(cutoffs[-1] + (last[0] if last else 0), projection_dim, cutoffs)
        rule = "a row for each word and cluster, and in each cluster a quarter of the width of the one before, "
        rule += f"at least 1, as its cutoffs are {list(cutoffs)}"
    problems = [
        f"{_dataset(name, cutoffs)} has shape {shapes.get(name)}, expected {expected.get(name)}"
        for name in dict.fromkeys([*expected, *shapes])
        if shapes.get(name) != expected.get(name) or not all(expected[name])
    ]
    if problems:
        raise WeightsError(f"{source}: the shapes of the softmax are wrong: {listed(problems, '; ')}. Expected {rule}.")
