"""A file object for HDF5 that stores errors instead of raising them."""

from __future__ import annotations

from io import FileIO


class DeferredErrorFile:
    """A file object that stores the first error of writing in `error`, and reports success to its caller.

    HDF5 can't close a file that it could not write to (a full disk, a quota), and crashes the process when it exits.
    So HDF5 writes to this object, which never fails. The code that uses HDF5 calls `check` after its own steps, and
    after the file is closed. Nothing is written after an error.

    file: unbuffered, open for reading and writing.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def check(self) -> None:
        """Raise the stored error, an OSError, if there is one."""
        if self.error is not None:
            raise self.error

    def write(self, data: bytes) -> int:
        """Write all of the data. Returns its number of bytes, even after an error."""
        if self.error is None:
            remaining = memoryview(data)
            try:
                while remaining:
                    remaining = remaining[self._file.write(remaining) :]
            except OSError as error:
                self.error = error
        return len(data)

    def flush(self) -> None:
        """Do nothing, since the file is unbuffered."""

    def truncate(self, size: int) -> int:
        """Set the file's size in bytes, and return it, even after an error."""
        if self.error is None:
            try:
                return self._file.truncate(size)
            except OSError as error:
                self.error = error
        return size

    def read(self, size: int) -> bytes:
        """Read `size` bytes. Bytes that could not be written are zeros."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def readinto(self, buffer: bytearray) -> int:
        """Fill a buffer and return its size. Bytes that could not be written are zeros."""
        data = self._file.read(len(buffer)) if self.error is None else b""
        # h5py up to 3.11 gives a buffer of Cython 0.29, in which an empty slice can't be set
        memoryview(buffer)[:] = data.ljust(len(buffer), b"\0")
        return len(buffer)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the position, as io.IOBase.seek does, and return it."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._file.tell()
