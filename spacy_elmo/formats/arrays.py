"""Reads .npy files of one dimension, or of rows.

Their headers are matched exactly, but numpy.load parses them as Python code.
"""

from __future__ import annotations

import os
import re
import shutil
from array import array
from pathlib import Path
from types import TracebackType
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


_BUFFERED = 1 << 16  # numbers in memory before they are written


class StreamedArray:
    """Writes an .npy file of shape (n,) if n is not known before the end. Use it in a `with` block.

    The numbers go to a temporary file, `path` with .raw appended. The .npy file is written when the block ends; if the
    block raises, it is not written.

    path: the .npy file.
    typecode: of Python's array module: "i" (int32) or "q" (int64).

    The attribute `n` counts the numbers so far.
    Raises OSError if a file can't be written.
    """

    def __init__(self, path: Path, typecode: str) -> None:
        self.path, self.n = path, 0
        self._raw = path.with_name(f"{path.name}.raw")
        self._buffer = array(typecode)

    def append(self, number: int) -> None:
        """Add a number. Raises OverflowError if it does not fit in the type."""
        self._buffer.append(number)
        self.n += 1
        if len(self._buffer) == _BUFFERED:
            self._flush()

    def __enter__(self) -> StreamedArray:
        self._file = self._raw.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            with self._file:
                if kind is None:
                    self._flush()
            if kind is None:
                self._finish()
        finally:
            self._raw.unlink()

    def _finish(self) -> None:
        dtype = np.dtype(self._buffer.typecode)
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (self.n,)}
        with self._raw.open("rb") as raw, self.path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            shutil.copyfileobj(raw, file)

    def _flush(self) -> None:
        self._buffer.tofile(self._file)
        del self._buffer[:]


# Of version 1.0, with its length in two bytes. numpy pads the header of such a file to 118 bytes too.
_ROWS_START, _LENGTH = b"\x93NUMPY\x01\x00", 118


class StreamedRows:
    """Writes an .npy file of shape (n, width) if n is not known before the end. Use it in a `with` block.

    The header is written when the block ends, and all is synced to the disk. If the block raises, the file has none,
    and no reader accepts it.

    path: the .npy file.
    dtype: type of the numbers, in this machine's byte order.
    width: length of each row.

    The attribute `n` counts the rows so far.
    Raises OSError if the file can't be written.
    """

    def __init__(self, path: Path, dtype: npt.DTypeLike, width: int) -> None:
        self.path, self.dtype, self.width, self.n = path, np.dtype(dtype), width, 0

    def append(self, rows: npt.NDArray[np.floating]) -> None:
        """Add rows, which are converted to the type of the file. rows: *Shape:* (k, width).

        Raises ValueError if they have another shape.
        """
        if rows.shape[1:] != (self.width,):
            raise ValueError(f"rows of shape {rows.shape}, not (k, {self.width})")
        self._file.write(np.ascontiguousarray(rows, self.dtype).data)
        self.n += len(rows)

    def __enter__(self) -> StreamedRows:
        self._file = self.path.open("wb")
        self._file.write(bytes(len(_ROWS_START) + 2 + _LENGTH))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                header = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': ({self.n}, {self.width}), }}"
                self._file.seek(0)
                self._file.write(
                    _ROWS_START + _LENGTH.to_bytes(2, "little") + f"{header:<{_LENGTH - 1}}\n".encode("ascii")
                )
                self._file.flush()
                os.fsync(self._file.fileno())
