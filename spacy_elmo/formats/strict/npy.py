"""Reads .npy files of one dimension, or of rows.

Their headers are matched exactly, but numpy.load parses them as Python code.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# Of version 1.0: the magic string, the version, and the length of the header in two bytes.
_START = b"\x93NUMPY\x01\x00"
_PREFIX = len(_START) + 2
# numpy pads a header of 60 bytes to 118. A number of up to 18 digits is below 2 ** 63.
_LONGEST_HEADER = 1024
_HEADER = re.compile(
    rb"\{'descr': '([^']*)', 'fortran_order': False, 'shape': \((0|[1-9]\d{0,17}),(?: ([1-9]\d{0,8}))?\), \} *\n"
)


def read_npy(path: str | os.PathLike[str], dtype: npt.DTypeLike, width: int | None = None) -> npt.NDArray[Any]:
    """Map an .npy file of one dimension, or of rows, into memory, read-only.

    Accepted is what numpy.save writes for such an array in C order. Nothing is parsed as code, and the file's size is
    compared with its header before memory is used.

    path: the file.
    dtype: the expected type, in this machine's byte order.
    width: the expected length of each row; None: the file has one dimension.

    Returns *Shape:* (n,), or (n, width), mapped into memory.
    Raises OSError if the file can't be opened, ValueError with the reason if it is not such a file.
    """
    path, expected = Path(path), np.dtype(dtype)
    if path.exists() and not path.is_file():  # opening a pipe could wait for ever
        raise ValueError(f"{path.name} is a folder or a special file")
    with path.open("rb") as file:
        start = file.read(_PREFIX)
        length = int.from_bytes(start[len(_START) :], "little")
        if not start.startswith(_START) or len(start) < _PREFIX or length > _LONGEST_HEADER:
            raise ValueError(f"{path.name} is not an .npy file of version 1.0")
        match = _HEADER.fullmatch(file.read(length))
        size = os.fstat(file.fileno()).st_size
        if match is None:
            raise ValueError(f"{path.name} has a header that is not of one dimension or of rows, or is damaged")
        got, n = match[1].decode("latin-1"), int(match[2])
        if got != expected.str:
            raise ValueError(f"{path.name} has numbers of type {got!r}, not {expected.str!r}")
        shape = (n,) if match[3] is None else (n, int(match[3]))
        if shape[1:] != (() if width is None else (width,)):
            raise ValueError(f"{path.name} has the shape {shape}, not {'(n,)' if width is None else f'(n, {width})'}")
        needed = _PREFIX + length + n * (width or 1) * expected.itemsize
        if size != needed:
            raise ValueError(f"{path.name} has {size:,} bytes, but its header says {needed:,}")
        return np.memmap(file, expected, mode="r", offset=_PREFIX + length, shape=shape)
