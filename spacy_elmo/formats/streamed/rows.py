"""Two-dimensional .npy files that are written part by part, in bounded memory."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

# Of version 1.0, with its length in two bytes. numpy pads the header of such a file to 118 bytes too.
_START, _LENGTH = b"\x93NUMPY\x01\x00", 118


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
        self._file.write(bytes(len(_START) + 2 + _LENGTH))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._file:
            if kind is None:
                header = f"{{'descr': '{self.dtype.str}', 'fortran_order': False, 'shape': ({self.n}, {self.width}), }}"
                self._file.seek(0)
                self._file.write(_START + _LENGTH.to_bytes(2, "little") + f"{header:<{_LENGTH - 1}}\n".encode("ascii"))
                self._file.flush()
                os.fsync(self._file.fileno())
