"""Checkpoints: one HDF5 file of plain arrays, written beside and renamed, so that there is always a whole one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy.typing as npt

from ..errors import CheckpointError, Errors
from ..formats.atomic import write_hdf5

Arrays = Mapping[str, npt.NDArray[Any]]


def write_checkpoint(path: Path, arrays: Arrays) -> None:
    """Write atomically: the file at `path` is the old one or the new one, never a part. Raises CheckpointError."""
    write_hdf5(path, arrays.items(), CheckpointError)


def read_checkpoint(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All arrays by their names. Raises CheckpointError where the file is missing or damaged."""
    arrays: dict[str, npt.NDArray[Any]] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (OSError, RuntimeError, ValueError) as error:
        raise CheckpointError(Errors.CHECKPOINT.format(path=path, reason=error)) from error
    return arrays
