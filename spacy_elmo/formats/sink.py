"""A file for HDF5 to write to that never fails before its eyes."""

from __future__ import annotations

from io import FileIO


class Sink:
    """An unbuffered binary file, open for reading and writing, that keeps what goes wrong in `error`.

    HDF5 can't close a file that it could not write to, and then crashes the process at its end (a full disk, a quota):
    so it is told that all went well, and whoever writes asks for `error`.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.error: OSError | None = None

    def check(self) -> None:
        """Raise what went wrong."""
        if self.error is not None:
            raise self.error

    def write(self, data: bytes) -> int:
        """Write, or keep the error."""
        if self.error is None:
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                self.error = error
        return len(data)

    def flush(self) -> None:
        """Nothing to do: the file is unbuffered."""

    def truncate(self, size: int) -> int:
        """Set the file's size, or keep the error."""
        if self.error is None:
            try:
                return self._file.truncate(size)
            except OSError as error:
                self.error = error
        return size

    def read(self, size: int) -> bytes:
        """Read; what was not written is read as zeros."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def readinto(self, buffer: bytearray) -> int:
        """Read; what was not written is read as zeros."""
        data = self._file.read(len(buffer)) if self.error is None else b""
        buffer[: len(data)] = data
        buffer[len(data) :] = bytes(len(buffer) - len(data))
        return len(buffer)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._file.tell()
