"""Plain and compressed text files, read line by line in bounded memory."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from ..errors import CorpusError, Errors

PACKED = (".gz", ".xz", ".zst")
LONGEST_LINE = 1 << 24  # bytes
_ZSTD_READ_BYTES = 1 << 10  # read at a time; they unpack to at most 32 MiB


class _Zstd(io.RawIOBase):
    """The decompressed bytes of a .zst file.

    zstandard's own stream reader does not notice a file that was cut short; this one raises EOFError.

    file: the compressed file.
    zstandard: the module, which is an optional dependency.
    """

    def __init__(self, file: IO[bytes], zstandard: ModuleType) -> None:
        self._file, self._zstandard = file, zstandard
        self._frame: Any = None
        self._packed, self._unpacked = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            data = self._packed or self._file.read(_ZSTD_READ_BYTES)
            if not data:
                if self._frame is not None:
                    raise EOFError("the file ends within a frame")
                return 0
            if self._frame is None:
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            self._unpacked, self._packed = memoryview(self._frame.decompress(data)), b""
            if self._frame.eof:
                self._packed, self._frame = self._frame.unused_data, None
        n = min(len(buffer), len(self._unpacked))
        buffer[:n], self._unpacked = self._unpacked[:n], self._unpacked[n:]
        return n


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed if its name ends in .gz, .xz or .zst.

    path: the file.

    Yields the open file.
    Raises CorpusError, which names the file, if it can't be opened, if it can't be read inside the block, or if its
    name ends in .zst and zstandard is not installed.
    """
    damage: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError)
    try:
        with path.open("rb") as file:
            if path.suffix == ".zst":
                zstandard = _zstandard(path)
                damage += (zstandard.ZstdError,)
                yield io.BufferedReader(_Zstd(file, zstandard))
            elif path.suffix == ".gz":
                with gzip.open(file) as zipped:
                    yield io.BufferedReader(zipped)
            elif path.suffix == ".xz":
                with lzma.open(file) as zipped:
                    yield io.BufferedReader(zipped)
            else:
                yield file
    except damage as error:
        raise CorpusError(Errors.SOURCE_DAMAGED.format(path=path, reason=error)) from error


def lines_of(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield a file's lines, each with its newline; None for a line of more than LONGEST_LINE bytes.

    file: open for reading bytes. Only b"\\n" ends a line.
    """
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (skipped := file.readline(LONGEST_LINE)) and not skipped.endswith(b"\n"):
            pass
        yield None


def _zstandard(path: Path) -> ModuleType:
    try:
        import zstandard
    except ImportError as error:
        raise CorpusError(Errors.SOURCE_ZSTD.format(path=path)) from error
    return zstandard
