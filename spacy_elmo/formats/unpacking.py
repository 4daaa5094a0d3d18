"""Plain and packed files, line by line, in bounded memory."""

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
_PIECE = 1 << 10  # bytes of a .zst file at once: they unpack to 32 MiB at most


class _Zstd(io.RawIOBase):
    """What zstd frames unpack to. zstandard's own stream reader takes a file that was cut short for a whole one."""

    def __init__(self, file: IO[bytes], zstandard: ModuleType) -> None:
        self._file, self._zstandard = file, zstandard
        self._frame: Any = None
        self._packed, self._unpacked = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            data = self._packed or self._file.read(_PIECE)
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
    """A file's bytes, unpacked where its name ends in .gz, .xz or .zst.

    Raises CorpusError, which names the file, where it can't be opened, or can't be read inside the block.
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
    """Lines with their ends, which are newlines alone; None for one of more than LONGEST_LINE bytes."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass
        yield None


def _zstandard(path: Path) -> ModuleType:
    try:
        import zstandard
    except ImportError as error:
        raise CorpusError(Errors.SOURCE_ZSTD.format(path=path)) from error
    return zstandard
