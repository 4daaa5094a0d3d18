"""Checkpoints: one HDF5 file of plain arrays, written beside and renamed, so that there is always a whole one."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy.typing as npt

from ..errors import ElmoError
from ..formats.atomic import replacing

Arrays = Mapping[str, npt.NDArray[Any]]


def write_checkpoint(path: Path, arrays: Arrays) -> None:
    """Write atomically: the file at `path` is the old one or the new one, never a part. Raises ElmoError."""
    with replacing(path, ElmoError) as temporary:
        with h5py.File(temporary, "w") as file:
            for name, array in arrays.items():
                file.create_dataset(name, data=array)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())


def read_checkpoint(path: Path) -> dict[str, npt.NDArray[Any]]:
    """All arrays by their names."""
    arrays: dict[str, npt.NDArray[Any]] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return arrays
