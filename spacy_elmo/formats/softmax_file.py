"""The softmax.hdf5 of a full or sampled softmax: a biLM's output layer, which the official weights.hdf5 lacks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import Errors, WeightsError
from .atomic import write_hdf5
from .hdf5_checks import Floats, check_dataset, find_dataset, open_hdf5, read_dataset, reading, root_names, shape_of
from .hdf5_storage import MAX_BYTES, check_bytes, check_storage

WEIGHT, BIAS = "softmax/W", "softmax/b"
EXPECTED = "the softmax.hdf5 of a biLM"
_HALF = (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE)


def read_softmax(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> tuple[Floats, Floats]:
    """Read a softmax, stored as float32 or float16.

    path: the softmax.hdf5.
    max_bytes: how much memory its values may take; four times the size of the file is always allowed.

    Returns the weight, *Shape:* (words, projection_dim), and the bias, *Shape:* (words,), both float32.
    Raises WeightsError if the file is missing, damaged or incomplete, or if its shapes do not fit each other.
    """
    with open_hdf5(path, EXPECTED, WeightsError) as file:
        candidates = {name: find_dataset(file, name, WeightsError) for name in (WEIGHT, BIAS)}
        datasets = {name: dataset for name, dataset in candidates.items() if dataset is not None}
        if missing := [name for name in candidates if name not in datasets]:
            message = Errors.SOFTMAX_MISSING
            raise WeightsError(message.format(path=path, missing=", ".join(missing), found=root_names(file)))
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
        raise WeightsError(Errors.SOFTMAX_STORED.format(path=path, got=stored))
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
        raise WeightsError(Errors.SOFTMAX_DTYPE.format(source=f"{path}: not written", name=name, got=values.dtype))
    with np.errstate(over="ignore"):  # a value that overflows raises below
        result = values.astype(stored.newbyteorder("<"))
    if n_bad := int(values.size - np.isfinite(result).sum()):
        raise WeightsError(Errors.SOFTMAX_NOT_FINITE.format(path=path, name=name, got=n_bad, dtype=stored))
    return result


def _check_shapes(weight: tuple[int, ...] | None, bias: tuple[int, ...] | None, source: str) -> None:
    fits = weight is not None and len(weight) == 2 and min(weight) > 0 and bias == weight[:1]
    if not fits:
        raise WeightsError(Errors.SOFTMAX_SHAPES.format(source=source, weight=weight, bias=bias))


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
