"""The softmax.hdf5 of a biLM's output layer, which the official weights.hdf5 lacks.

Its parameters are `weight` and `bias`, with a row for each word: the datasets softmax/W and softmax/b.
"""

import math
import os
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ..errors import WeightsError, listed
from .hdf5 import Floats, check_bytes, check_dataset, find, find_all, open_hdf5, read_dataset, write_hdf5

_DATASETS = {"weight": "softmax/W", "bias": "softmax/b"}


def read_softmax(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """Read the parameters by name, float32."""
    with open_hdf5(path, "the softmax.hdf5 of a biLM", WeightsError) as file:
        if find(file, "adaptive") is not None:
            raise WeightsError(
                f"{path}: holds an adaptive softmax, which was removed. Expected the datasets softmax/W and softmax/b. "
                "Copy options.json and weights.hdf5 to a folder of their own, and fit a new softmax with pretrain "
                '(paths.init, training.frozen_tokens, and training.softmax.kind "sampled" or "full"); or use version '
                "0.1.0, which reads it."
            )
        datasets = find_all(file, _DATASETS.values(), "those of a softmax")
        _check_shapes({name: datasets[dataset].shape for name, dataset in _DATASETS.items()}, str(path))
        n_bytes = sum(4 * math.prod(dataset.shape) for dataset in datasets.values())
        check_bytes(n_bytes, path, "the softmax")
        for dataset in datasets.values():
            check_dataset(dataset, ("float32", "float16"))
        return {name: read_dataset(datasets[dataset]) for name, dataset in _DATASETS.items()}


def write_softmax(
    path: str | os.PathLike[str],
    arrays: Mapping[str, npt.NDArray[np.floating]],
    dtype: npt.DTypeLike = np.float32,
    *,
    compress: bool = False,
) -> None:
    """Write parameters by name atomically, as float32, or as float16 for half the size."""
    _check_shapes({name: values.shape for name, values in arrays.items()}, f"{path}: not written")
    stored = np.dtype(dtype)
    datasets: dict[str, npt.NDArray[np.floating]] = {}
    for name, dataset in _DATASETS.items():
        with np.errstate(over="ignore"):  # a value that overflows raises below
            datasets[dataset] = arrays[name].astype(stored.newbyteorder("<"))
        if n_bad := int(arrays[name].size - np.isfinite(datasets[dataset]).sum()):
            raise WeightsError(
                f"{path}: not written: {dataset} has {n_bad} values that are NaN, infinite or too large for {stored}. "
                "Expected none."
            )
    write_hdf5(path, datasets.items(), WeightsError, compress=compress)


def _check_shapes(shapes: Mapping[str, tuple[int, ...] | None], source: str) -> None:
    weight = shapes["weight"]
    size = weight if weight is not None and len(weight) == 2 else (0, 0)
    problems = [
        f"{_DATASETS[name]} has shape {shapes[name]}, expected {expected}"
        for name, expected in (("weight", size), ("bias", size[:1]))
        if shapes[name] != expected or not all(expected)
    ]
    if problems:
        raise WeightsError(
            f"{source}: the shapes of the softmax are wrong: {listed(problems, '; ')}. Expected (words, "
            "projection_dim) and (words,), with at least one word and one dimension."
        )
