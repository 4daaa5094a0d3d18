"""softmax.hdf5: a biLM's output layer, which the official weights.hdf5 has no place for."""

from __future__ import annotations

import os
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import Errors, WeightsError
from .atomic import write_hdf5
from .hdf5_checks import Floats, check_dataset, find_dataset, open_hdf5, read_dataset, reading, root_names, shape_of
from .hdf5_storage import check_storage

WEIGHT, BIAS = "softmax/W", "softmax/b"
EXPECTED = "the softmax.hdf5 of a biLM"
_HALF = (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE)


def read_softmax(path: str | os.PathLike[str]) -> tuple[Floats, Floats]:
    """The weight, (words, projection_dim), and the bias, (words,), as float32, stored as float32 or float16.

    Raises WeightsError for a file that is missing, damaged, incomplete, or of other shapes.
    """
    with open_hdf5(path, EXPECTED, WeightsError) as file:
        found = {name: find_dataset(file, name, WeightsError) for name in (WEIGHT, BIAS)}
        datasets = {name: dataset for name, dataset in found.items() if dataset is not None}
        if missing := [name for name in found if name not in datasets]:
            message = Errors.SOFTMAX_MISSING
            raise WeightsError(message.format(path=path, missing=", ".join(missing), found=root_names(file)))
        weight, bias = (shape_of(dataset, name, WeightsError) for name, dataset in datasets.items())
        _check_shapes(weight, bias, str(path))
        for name, dataset in datasets.items():
            check_stored(dataset, name)
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
    """Write a softmax, whole or not at all. weight: (words, projection_dim); bias: (words,).

    dtype: float32, or float16 for a file of half the size. compress: by HDF5's filters shuffle and gzip.
    Raises WeightsError for arrays of other shapes, and for values that are not finite in that type.
    """
    stored = stored_type(path, dtype)
    _check_shapes(weight.shape, bias.shape, f"{path}: not written")
    arrays = {name: stored_values(path, name, values, stored) for name, values in ((WEIGHT, weight), (BIAS, bias))}
    write_hdf5(path, arrays.items(), WeightsError, compress=compress)


def stored_type(path: str | os.PathLike[str], dtype: npt.DTypeLike) -> np.dtype[Any]:
    """A file's type of values. Raises WeightsError for one that is neither float32 nor float16."""
    stored = np.dtype(dtype)
    if stored not in (np.float32, np.float16):
        raise WeightsError(Errors.SOFTMAX_STORED.format(path=path, got=stored))
    return stored


def stored_values(
    path: str | os.PathLike[str], name: str, values: npt.NDArray[np.floating], stored: np.dtype[Any]
) -> npt.NDArray[np.floating]:
    """Values as they stand in a file. Raises WeightsError for those that are no floats, or not finite in that type."""
    if values.dtype.kind != "f":
        raise WeightsError(Errors.SOFTMAX_DTYPE.format(source=f"{path}: not written", name=name, got=values.dtype))
    with np.errstate(over="ignore"):  # a value too large for the type is found below
        result = values.astype(stored.newbyteorder("<"))
    if n_bad := int(values.size - np.isfinite(result).sum()):
        raise WeightsError(Errors.SOFTMAX_NOT_FINITE.format(path=path, name=name, got=n_bad, dtype=stored))
    return result


def _check_shapes(weight: tuple[int, ...] | None, bias: tuple[int, ...] | None, source: str) -> None:
    fits = weight is not None and len(weight) == 2 and min(weight) > 0 and bias == weight[:1]
    if not fits:
        raise WeightsError(Errors.SOFTMAX_SHAPES.format(source=source, weight=weight, bias=bias))


def check_stored(dataset: h5py.Dataset, name: str) -> None:
    """As check_dataset, which takes float32 alone. Raises WeightsError."""
    with reading(dataset.file.filename, name, WeightsError):
        half = dataset.id.get_type() in _HALF
        if half:
            check_storage(dataset, 2, name, WeightsError)
    if not half:
        check_dataset(dataset, name, WeightsError)
