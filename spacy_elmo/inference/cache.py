"""A cache of layers in memory and in a file."""

import hashlib
import os
import sqlite3
import struct
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np

from ..errors import CacheError, CacheWarning
from ..formats.paths import expanded, refuse_address
from ..locks import fork_lock
from .engine import Layers

_SHAPE = struct.Struct("<3q")
APPLICATION_ID, VERSION = 0x654C4D6F, 1
_TABLE = "CREATE TABLE IF NOT EXISTS layers (key BLOB PRIMARY KEY, shape BLOB, crc INTEGER, data BLOB)"
_MAX_BYTES = 2**29  # older versions of SQLite accept blobs of at most 1e9 bytes
# An SQLite error's text can have bytes of a damaged file, which Python may not decode.
_PROBLEMS = (sqlite3.Error, UnicodeDecodeError, MemoryError, OSError)
_TIMEOUT = 60.0  # seconds to wait for another process that has locked the file

_LOCK = fork_lock()  # shared by all caches; each holds it only while it copies some arrays
# SQLite must not have a file open during a fork. So each call opens and closes the file (50 us) while it holds this.
_FILE_LOCK = fork_lock()


def row_key(fingerprint: bytes, words: Sequence[str], before: bytes = b"") -> bytes:
    """Return the key of a row of words that a biLM reads, 32 bytes.

    fingerprint: digest of the biLM and its settings.
    before: key of the row after which this row starts, if the state is carried; b"": it starts from the zero state.
    """
    parts = [fingerprint, before, *(word.encode("utf8", "surrogatepass") for word in words)]
    # the length of each part is written before it, so that different parts never give the same bytes
    return hashlib.blake2b(b"".join(len(part).to_bytes(8, "little") + part for part in parts), digest_size=32).digest()


class LayerCache:
    """Caches arrays by key: all of them in a file, if there is one, and as many as possible in memory.

    A biLM uses a cache only while it is open. A new cache is closed, so that memory is used only from training on.
    It is thread-safe. Pickles and deep copies do not contain the arrays in memory.

    max_bytes: size of the arrays in memory, at most.
    path: path of the file; None: no file. Raises CacheError if it cannot be used.
    """

    # Arrays in memory are never replaced. If memory is full, new arrays are not added. Training reads the corpus in the
    # same order again and again: a cache that drops its oldest arrays would drop each of them before its next use.

    def __init__(self, max_bytes: int, path: str | None = None) -> None:
        self.max_bytes, self.path, self.nbytes, self.is_open = max_bytes, path, 0, False
        self._memory: dict[bytes, Layers] = {}
        self._file = None if path is None else LayersFile(path)
        self._has_warned = False

    def __len__(self) -> int:
        """Return the number of arrays in memory."""
        return len(self._memory)

    def __reduce__(self) -> "tuple[type[LayerCache], tuple[int, str | None], dict[str, bool]]":
        return LayerCache, (self.max_bytes, self.path), {"is_open": self.is_open}

    def open(self) -> None:
        """Let the biLM use the cache."""
        self.is_open = True

    def close(self) -> None:
        """Remove all arrays from memory, and do not let the biLM use the cache. The file is not changed."""
        self.is_open = False
        with _LOCK:
            self._memory.clear()
            self.nbytes = 0

    def check_file(self) -> None:
        """Open the file or create it, if there is a path. Raises CacheError if it cannot be used."""
        if self._file is not None:
            self._file.read([])

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Layers]:
        """Return the arrays of those keys that are in the cache, *Shape:* (layers, words, width), read-only.

        Raises CacheError if the file cannot be read.
        """
        found = {key: layers for key in keys if (layers := self._memory.get(key)) is not None}
        missing = sorted(set(keys) - found.keys())
        if self._file is not None and missing:
            read = self._file.read(missing)
            self._add_to_memory(read)
            found |= read
        return found

    def put(self, arrays: Mapping[bytes, Layers]) -> None:
        """Add copies of arrays by key, *Shape:* (layers, words, width). Raises CacheError as `LayersFile.write`."""
        self._add_to_memory(arrays)
        if self._file is not None:
            self._file.write(arrays)

    def _add_to_memory(self, arrays: Mapping[bytes, Layers]) -> None:
        with _LOCK:
            for key, layers in arrays.items():
                if key in self._memory:
                    continue
                if self.nbytes + layers.nbytes <= self.max_bytes:
                    copied = layers.copy()
                    copied.setflags(write=False)
                    self._memory[key] = copied
                    self.nbytes += layers.nbytes
                elif self._file is None and self.max_bytes and not self._has_warned:
                    self._has_warned = True
                    warnings.warn(
                        f"the cache of the biLM's layers has reached cache_mb = {self.max_bytes // 2**20}: layers that "
                        "do not fit are computed again each time. Set cache_mb higher, or set cache_file, which stores "
                        "all layers. This warning is given once.",
                        CacheWarning,
                        stacklevel=2,
                    )


class LayersFile:
    """Arrays by key in an SQLite file, whose damaged rows count as missing until they are replaced.

    The object is safe with threads, processes and forks. A read-only file can be read.

    path: the file. It is opened, or created if it is missing, at the first use.

    Raises CacheError at once if `path` is an address on the network or a folder. Raises it at the first use if the file
    can't be created, is something else, has another version, or is damaged.
    """

    # SQLite uses its rollback journal, not WAL: WAL writes new pages twice and takes 1.5 times as long, and it needs
    # shared memory, which network folders and read-only folders lack.

    def __init__(self, path: str | os.PathLike[str]) -> None:
        refuse_address(path, CacheError)
        self.path = os.path.abspath(expanded(path))
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise self._error(
                "a folder or a special file. Set cache_file to the path of a file; it is created if it is missing."
            )
        self._writes = True

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Layers]:
        """Return the arrays of those keys that are in the file, read-only. Raises CacheError if it can't be read."""
        result: dict[bytes, Layers] = {}
        try:
            with self._open() as connection:
                for key in keys:
                    row = connection.execute("SELECT shape, crc, data FROM layers WHERE key = ?", [key]).fetchone()
                    if row is not None and (layers := _from_row(key, *row)) is not None:
                        result[key] = layers
        except _PROBLEMS as error:
            raise self._error(
                f"the cached layers can't be opened or read ({error}). If another run uses the file, wait for it. If "
                "the folder can't be written to or has no room, set cache_file to another place. Delete the file only "
                "if it is damaged."
            ) from error
        return result

    def write(self, arrays: Mapping[bytes, Layers]) -> None:
        """Add or replace arrays by key, *Shape:* (layers, words, width), all or none. Those above 512 MiB are left out.

        Warns (CacheWarning) if the file can't be written. After that this object writes nothing.
        Raises CacheError if the file is something else.
        """
        rows = [_to_row(key, layers) for key, layers in arrays.items() if layers.nbytes <= _MAX_BYTES]
        if not rows or not self._writes:
            return
        try:
            with self._open() as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT OR REPLACE INTO layers VALUES (?, ?, ?, ?)", rows)
                connection.execute("COMMIT")
        except _PROBLEMS as error:
            self._writes = False
            warnings.warn(
                f"{self.path}: no more layers are written there ({error}). Training goes on without the file. "
                "Make room, or set cache_file to a file that can be written to. This warning is given once.",
                CacheWarning,
                stacklevel=2,
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Connect to the file, and create it if it is missing or empty."""
        with _FILE_LOCK:
            self._check_header()
            with closing(sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)) as connection:
                connection.text_factory = bytes  # damage can turn a blob into text, which may not be UTF-8
                connection.execute("PRAGMA cell_size_check = ON")
                connection.execute("PRAGMA synchronous = NORMAL")
                # The version is also 0 if a process was killed while it created the file.
                if connection.execute("PRAGMA user_version").fetchone() == (0,):
                    try:
                        connection.execute("BEGIN IMMEDIATE")
                        connection.execute(_TABLE)
                        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                        connection.execute(f"PRAGMA user_version = {VERSION}")
                        connection.execute("COMMIT")
                    except sqlite3.Error:
                        with suppress(OSError):  # SQLite leaves an empty file on a full disk
                            if not os.path.getsize(self.path):
                                os.unlink(self.path)
                        raise
                yield connection

    def _check_header(self) -> None:
        """Raise CacheError if the file exists but is not of this format.

        The header is read without SQLite, since SQLite could change a database of another program.
        """
        try:
            with open(self.path, "rb") as file:
                header = file.read(100)
        except FileNotFoundError:
            folder = os.path.dirname(self.path)
            if not os.path.isdir(folder):
                raise self._error(
                    f"can't be created, because the folder {folder} does not exist. Create it, or change cache_file."
                ) from None
            return
        version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if not header or (application, version) == (APPLICATION_ID, VERSION):
            return
        got = "no SQLite database"
        if header.startswith(b"SQLite format 3\0"):
            got = f"an SQLite database with the application_id {application} and the version {version}"
        raise self._error(
            f"not a file of cached layers, but {got}. Expected the application_id {APPLICATION_ID} and the version "
            f"{VERSION}. Set cache_file to another file, or delete this one if nobody needs it."
        )

    def _error(self, message: str) -> CacheError:
        return CacheError(f"{self.path}: {message}")


def _to_row(key: bytes, layers: Layers) -> tuple[bytes, bytes, int, bytes]:
    shape, data = _SHAPE.pack(*layers.shape), layers.astype("<f4").tobytes()
    return key, shape, _checksum(key, shape, data), data


def _from_row(key: bytes, shape: Any, crc: Any, data: Any) -> Layers | None:
    """Return the array of a row; None if the row is damaged."""
    if not (isinstance(shape, bytes) and isinstance(data, bytes)) or _checksum(key, shape, data) != crc:
        return None
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False).reshape(_SHAPE.unpack(shape))


def _checksum(key: bytes, shape: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key + shape))
