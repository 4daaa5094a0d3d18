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

from ..errors import SOURCE_DAMAGED, CorpusError

PACKED = (".gz", ".xz", ".zst")
LONGEST_LINE = 1 << 24  # bytes
# A packed file may unpack to this many bytes, or to this multiple of its own size if that is more. Text packs to a
# third up to a tenth of its size; zeros to a thousandth and less.
UNPACKED_BYTES, UNPACKED_TIMES = 1 << 30, 200
_SAMPLE = 1 << 22  # bytes of unpacked text by which the size of the rest is estimated
_XZ_MEMORY = 300 << 20  # bytes for unpacking; xz -9 needs 65 MiB, and the header can ask for 4 GiB
_XZ_READ_BYTES = 1 << 16
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


class _Xz(io.RawIOBase):
    """The decompressed bytes of an .xz file.

    Python's own reader takes as much memory as the file asks for, and ignores what follows a complete stream.

    file: the compressed file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._packed = file, b""
        self._stream: lzma.LZMADecompressor | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        unpacked = b""
        while not unpacked:
            data = b""
            if self._stream is None or self._stream.needs_input:
                data = self._packed or self._file.read(_XZ_READ_BYTES)
                self._packed = b""
                if not data:
                    if self._stream is not None:
                        raise EOFError("the file ends within a stream")
                    return 0
            if self._stream is None:
                data = data.lstrip(b"\0")  # zeros may follow each stream
                if not data:
                    continue
                self._stream = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
            unpacked = self._stream.decompress(data, len(buffer))
            if self._stream.eof:
                self._packed, self._stream = self._stream.unused_data, None
        buffer[: len(unpacked)] = unpacked
        return len(unpacked)


class _Limited(io.RawIOBase):
    """The bytes of another file, up to a limit.

    file: open for reading bytes.
    path: the packed file, for the message and its size.

    Reading raises CorpusError if there are more bytes.
    """

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path, self._n = file, path, 0
        self._limit = unpacked_limit(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int = self._file.readinto(buffer)
        self._n += n
        if self._n > self._limit:
            raise CorpusError(
                f"{self._path}: unpacks to more than {self._limit:,} bytes. Text does not pack that well: the "
                "file is damaged, or made to take time and memory. If it is a text, unpack it and give the "
                "unpacked file: plain files have no limit."
            )
        return n


def unpacked_limit(path: Path) -> int:
    """Return the number of bytes that a packed file may unpack to. Raises OSError."""
    return max(UNPACKED_BYTES, UNPACKED_TIMES * path.stat().st_size)


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed if its name ends in .gz, .xz or .zst.

    path: the file.

    Yields the open file.
    Raises CorpusError, which names the file, if it can't be opened, if it can't be read inside the block, if it unpacks
    to more bytes than `unpacked_limit` says, or if its name ends in .zst and zstandard is not installed.
    """
    with _opened(path) as (_, file):
        yield file


def unpacked_size(path: Path) -> int:
    """Return the number of bytes that a packed file unpacks to: of a long one an estimate by its beginning.

    path: the file. Raises CorpusError as `unpacked` does.
    """
    with _opened(path) as (packed, file):
        sample = len(file.read(_SAMPLE))
        return sample if sample < _SAMPLE else max(sample, sample * path.stat().st_size // packed.tell())


@contextmanager
def _opened(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Yield a file and what it unpacks to, which is the same one if it is not packed. Raises as `unpacked` does."""
    damage: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError)
    try:
        with path.open("rb") as file:
            if path.suffix == ".zst":
                zstandard = _zstandard(path)
                damage += (zstandard.ZstdError,)
                yield file, _buffered(_Zstd(file, zstandard), path)
            elif path.suffix == ".gz":
                with gzip.open(file) as zipped:
                    yield file, _buffered(zipped, path)
            elif path.suffix == ".xz":
                yield file, _buffered(_Xz(file), path)
            else:
                yield file, file
    except damage as error:
        raise CorpusError(SOURCE_DAMAGED.format(path=path, reason=error)) from error


def _buffered(file: Any, path: Path) -> io.BufferedReader:
    return io.BufferedReader(_Limited(file, path), 1 << 16)


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
        raise CorpusError(
            f"{path}: packed with zstd, but zstandard is missing. Get it with pip install zstandard."
        ) from error
    return zstandard
