"""Files of text: how they are found, unpacked and divided into lines, and what is not text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple

from ..errors import SOURCE_DAMAGED, CorpusError
from ..formats.paths import Name, expanded, find_files

PACKED = (".gz", ".bz2", ".xz", ".zst")
STANDARD_INPUT = Path("-")


class TextFile(NamedTuple):
    """A file of text. named: whether the user gave its name; otherwise it was found in a folder or by a pattern.

    A file that was named and can't be read is an error. One that was found is a bad item among the others.
    """

    path: Path
    named: bool

    @property
    def name(self) -> str:
        """What messages call it."""
        return "standard input" if self.path == STANDARD_INPUT else str(self.path)


def text_files(inputs: Name | Sequence[Name], output: Name | None = None) -> list[TextFile]:
    """Return the files of one or several inputs, in order: files, folders and patterns (see `find_files`), or "-"."""
    names = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    if sum(os.fspath(name) == "-" for name in names) > 1:
        raise CorpusError("- is given twice as input. Expected it once: standard input can be read once only.")
    found: list[TextFile] = []
    for name in names:
        if os.fspath(name) == "-":
            found.append(TextFile(STANDARD_INPUT, True))
        else:
            found += [TextFile(path, path == expanded(name)) for path in find_files(name, output)]
    return found


def kind_of(path: Path) -> str:
    """Return the end of a file's name that tells its format, in lower case and after .gz and so on: ".jsonl"."""
    packed = path.suffix.lower() in PACKED
    return (Path(path.stem).suffix if packed else path.suffix).lower()


_PACKED_RATIO = 3  # text packs to about a third


def total_bytes(files: Iterable[Path]) -> int | None:
    """Return the bytes of text in files, an estimate if one is packed; None if one is a DocBin or no regular file."""
    total = 0
    for path in files:
        if not path.is_file() or kind_of(path) == ".spacy":
            return None
        total += path.stat().st_size * (_PACKED_RATIO if path.suffix.lower() in PACKED else 1)
    return total


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressed if its name ends in .gz, .bz2, .xz or .zst; "-" is standard input."""
    if path == STANDARD_INPUT:
        stream: Any = getattr(sys.stdin, "buffer", None)
        if stream is None:
            reason = "it is closed, or has text, not bytes"
            raise CorpusError(SOURCE_DAMAGED.format(path="standard input", reason=reason))
        yield stream if hasattr(stream, "peek") else io.BufferedReader(stream)  # as a program may have put there
        return
    damage: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, lzma.LZMAError)
    packed = path.suffix.lower()
    if packed == ".zst":
        try:
            import zstandard
        except ImportError as error:
            raise CorpusError(
                f"{path}: packed with zstd, but zstandard is missing. Get it with pip install zstandard."
            ) from error
        damage += (zstandard.ZstdError,)
    try:
        with path.open("rb") as file:
            if packed == ".zst":
                yield io.BufferedReader(_Zstd(file, zstandard), 1 << 16)
            elif packed in PACKED:
                opened: Any = {".gz": gzip, ".bz2": bz2, ".xz": lzma}[packed]
                with opened.open(file) as zipped:
                    yield zipped
            else:
                yield file
    except damage as error:
        raise CorpusError(SOURCE_DAMAGED.format(path=path, reason=error)) from error


class _Zstd(io.RawIOBase):
    """The decompressed bytes of a .zst file. zstandard's own stream reader does not notice if it was cut short."""

    def __init__(self, file: IO[bytes], zstandard: ModuleType) -> None:
        self._file, self._zstandard = file, zstandard
        self._frame: Any = None
        self._packed, self._unpacked = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            data = self._packed or self._file.read(1 << 10)  # they unpack to at most 32 MiB
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


# What is not text. The first bytes of a file, and what it is then.
_SIGNATURES = {
    b"%PDF-": "a PDF document",
    b"{\\rtf": "an RTF document",
    b"\xd0\xcf\x11\xe0": "a document of an old Microsoft Office",
    b"PK\x03\x04": "a zip archive, or a document of Word, Excel or LibreOffice",
    b"7z\xbc\xaf": "a 7z archive",
    b"\x1f\x8b": "packed with gzip: give it a name that ends in .gz",
    b"\xfd7zXZ": "packed with xz: give it a name that ends in .xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd: give it a name that ends in .zst",
    b"\x89PNG": "an image (PNG)",
    b"\xff\xd8\xff": "an image (JPEG)",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "an array of numpy",
    b"\x7fELF": "a program",
    b"\xff\xfe": "text in UTF-16: convert it to UTF-8, for example with iconv",
    b"\xfe\xff": "text in UTF-16: convert it to UTF-8, for example with iconv",
}
# Those that a text may begin with, too: they count if there is a control character.
_SIGNATURES_OF_LETTERS = {
    b"BZh": "packed with bzip2: give it a name that ends in .bz2",
    b"Rar!\x1a": "a rar archive",
    b"GIF87a": "an image (GIF)",
    b"GIF89a": "an image (GIF)",
    b"II*\0": "an image (TIFF)",
    b"MM\0*": "an image (TIFF)",
    b"OggS\0": "a sound",
    b"ID3\3": "a sound",
    b"ID3\4": "a sound",
    b"PAR1\x15": "a Parquet file: embed the DataFrame of it with EmbedColumns, or write its texts to a .csv file",
    b"ARROW1\0": "an Arrow file",
    b"SQLite format 3\0": "an SQLite database",
}
_HEAD = 1 << 10  # bytes that are looked at
_CONTROL = bytes({*range(32), 127} - set(b"\t\n\r\f\v\x1b"))


def _what(head: bytes) -> str | None:
    """Return what a file is that begins with these bytes, if it is no text in UTF-8."""
    n_control = len(head) - len(head.translate(None, _CONTROL))
    for signatures in (_SIGNATURES, _SIGNATURES_OF_LETTERS if n_control else {}):
        for signature, what in signatures.items():
            if head.startswith(signature):
                return what
    if head[257:262] == b"ustar":
        return "a tar archive: give the files in it"
    if len(head) >= 64 and n_control > len(head) / 20:
        return "text in UTF-16 without its mark, or no text at all" if head.count(0) > len(head) / 5 else "no text"
    return None


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], bytes]]:
    """Open a file of text as `unpacked` does, and yield its first bytes, too. Raises CorpusError if it is no text."""
    with unpacked(path) as file:
        packed: Any = file
        head: bytes = packed.peek(_HEAD)[:_HEAD]
        if what := _what(head):
            raise CorpusError(f"{TextFile(path, True).name}: {what}. Expected text in UTF-8.")
        yield file, head


LONGEST_LINE = 1 << 24  # bytes
_BLOCK = 1 << 14


def lines_of(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of an open file with their ends, which are those of Python's text files: \\n, \\r\\n or \\r.

    None stands for a line of more than LONGEST_LINE bytes.
    """
    read: Any = getattr(file, "read1", file.read)  # what there is, as from a terminal
    begun, n_begun, skipping = list[bytes](), 0, False  # parts of the line that may go on in the next block
    while block := read(_BLOCK):
        if begun[-1:] != [b"\r"] and b"\n" not in block and b"\r" not in block:
            begun.append(block)
            n_begun += len(block)
            if n_begun > LONGEST_LINE:
                begun, n_begun, skipping = [b"x"], 1, True
            continue
        lines = b"".join([*begun, block]).splitlines(keepends=True)
        begun, n_begun = [], 0
        if not lines[-1].endswith(b"\n"):
            rest = lines.pop()
            n_begun = len(rest)
            begun = [rest[:-1], b"\r"] if rest.endswith(b"\r") else [rest]  # perhaps of \r\n
        for line in lines:
            yield None if skipping or _too_long(line) else line
            skipping = False
    if begun:
        line = b"".join(begun)
        yield None if skipping or _too_long(line) else line


def _too_long(line: bytes) -> bool:
    return len(line) > LONGEST_LINE and len(line.rstrip(b"\r\n")) > LONGEST_LINE
