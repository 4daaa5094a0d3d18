"""One-dimensional .npy files that are written number by number, in bounded memory."""

from __future__ import annotations

import shutil
from array import array
from pathlib import Path
from types import TracebackType

import numpy as np

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
