"""SHA-256 of arrays, of HDF5 files and of anything that JSON can say."""

import hashlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np


def digest(*values: Any) -> str:
    """SHA-256 of arrays (type, shape and bytes), bytes, and of anything else as JSON."""
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            total.update(f"{value.dtype} {value.shape}".encode())
            total.update(np.ascontiguousarray(value).tobytes())
        else:
            total.update(value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, default=str).encode())
    return total.hexdigest()


def hdf5_digest(path: Path) -> str:
    """SHA-256 of the names and values of all datasets and attributes.

    path: HDF5 file.
    """
    values: list[Any] = []

    def add(name: str, node: Any) -> None:
        values.append(name)
        if isinstance(node, h5py.Dataset):
            value = node[()]
            values.append(str(value.tolist()) if isinstance(value, np.ndarray) and value.dtype.hasobject else value)

    with h5py.File(path) as file:
        values.append(sorted((name, str(value)) for name, value in file.attrs.items()))
        file.visititems(add)
        return digest(*values)
