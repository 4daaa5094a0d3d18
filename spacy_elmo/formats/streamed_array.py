"""Arrays that are written number by number, in bounded memory."""

from __future__ import annotations

import shutil
from array import array
from pathlib import Path
from types import TracebackType

import numpy as np

_BUFFERED = 1 << 16  # numbers


class StreamedArray:
    """Writes an .npy file of shape (n,) whose n is known at the end alone: when its with block ends.

    typecode: of the array module: "i" (int32) or "q" (int64). Raises OSError.
    """

    def __init__(self, path: Path, typecode: str) -> None:
        self.path, self.n = path, 0
        self._raw = path.with_name(f"{path.name}.raw")
        self._buffer = array(typecode)

    def append(self, number: int) -> None:
        """Add a number. Raises OverflowError where it does not fit."""
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
