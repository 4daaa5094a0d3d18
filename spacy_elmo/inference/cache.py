"""A cache of layers in memory and in a file."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CacheError, CacheWarning
from ..formats.paths import expanded, refuse_address
from ..locks import fork_lock
from .engine import Layers

_SHAPE = struct.Struct("<3q")
APPLICATION_ID, VERSION = 0x654C4D6F, 1
_TABLE = "CREATE TABLE IF NOT EXISTS layers (key BLOB PRIMARY KEY, shape BLOB, crc INTEGER, data BLOB)"
# Older versions of SQLite accept at most 999 values in a query, and blobs of at most 1e9 bytes.
_MAX_KEYS_PER_QUERY, _MAX_BYTES = 500, 2**29
# An SQLite error's text can have bytes of a damaged file, which Python may not decode.
_PROBLEMS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
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

    def __reduce__(self) -> tuple[type[LayerCache], tuple[int, str | None], dict[str, bool]]:
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

    def get(self, keys: Sequence[bytes]) -> list[Layers | None]:
        """Return the array of each key, *Shape:* (layers, words, width), read-only; None if there is none.

        Raises CacheError if the file cannot be read.
        """
        cached = [self._memory.get(key) for key in keys]
        missing = {key for key, layers in zip(keys, cached) if layers is None}
        if self._file is None or not missing:
            return cached
        read = self._file.read(sorted(missing))
        self._add_to_memory(read.items())
        return [read.get(key) if layers is None else layers for key, layers in zip(keys, cached)]

    def put(self, keys: Sequence[bytes], arrays: Sequence[Layers]) -> None:
        """Add copies of arrays, *Shape:* (layers, words, width), to the cache.

        Raises CacheError if the file is something else.
        """
        items = dict(zip(keys, arrays))
        self._add_to_memory(items.items())
        if self._file is not None:
            self._file.write(items)

    def _add_to_memory(self, items: Iterable[tuple[bytes, Layers]]) -> None:
        with _LOCK:
            for key, layers in items:
                size = layers.size * np.dtype(np.float32).itemsize
                if key in self._memory:
                    continue
                if self.nbytes + size <= self.max_bytes:
                    copied = np.array(layers, np.float32, order="C")
                    copied.setflags(write=False)
                    self._memory[key] = copied
                    self.nbytes += size
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
    """Arrays by key in an SQLite file. An array that was written is never changed.

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
        self._damaged: set[bytes] = set()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Layers]:
        """Return the arrays of those keys that are in the file, read-only, float32. Damaged rows count as missing.

        Raises CacheError if the file can't be read.
        """
        result: dict[bytes, Layers] = {}
        try:
            with self._open() as connection:
                for start in range(0, len(keys), _MAX_KEYS_PER_QUERY):
                    some = keys[start : start + _MAX_KEYS_PER_QUERY]
                    marks = ",".join("?" * len(some))
                    query = f"SELECT key, shape, crc, data FROM layers WHERE key IN ({marks})"
                    for row in connection.execute(query, some):
                        layers = _from_row(*row)
                        if layers is None:  # the key of a damaged row may be wrong as well
                            self._damaged.update(some)
                        else:
                            result[row[0]] = layers
        except (*_PROBLEMS, OSError) as error:
            raise self._error(
                f"the cached layers can't be opened or read ({error}). If another run uses the file, wait for it. If "
                "the folder can't be written to or has no room, set cache_file to another place. Delete the file only "
                "if it is damaged."
            ) from error
        self._damaged -= result.keys()
        return result

    def write(self, items: Mapping[bytes, npt.NDArray[Any]]) -> None:
        """Add arrays in one transaction. Keys that are in the file already are skipped, unless their rows are damaged.

        items: the arrays by key, *Shape:* (layers, words, width), stored as float32. Arrays of more than 512 MiB are
            skipped.

        Warns (CacheWarning) if the file can't be written. After that this object writes nothing.
        Raises CacheError if the file is something else.
        """
        rows = [_to_row(key, layers) for key, layers in items.items() if layers.nbytes <= _MAX_BYTES]
        if not rows or not self._writes:
            return
        try:
            with self._open() as connection:
                connection.execute("BEGIN IMMEDIATE")
                damaged = [(key,) for key in self._damaged & items.keys()]
                connection.executemany("DELETE FROM layers WHERE key = ?", damaged)
                connection.executemany("INSERT OR IGNORE INTO layers VALUES (?, ?, ?, ?)", rows)
                connection.execute("COMMIT")
                self._damaged -= items.keys()
        except (*_PROBLEMS, OSError) as error:
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
                connection.text_factory = bytes  # because damage can turn a blob into text, which may not be UTF-8
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
        if not header:
            return
        version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        is_database = len(header) == 100 and header.startswith(b"SQLite format 3\0")
        if not is_database or application != APPLICATION_ID:
            other = f"an SQLite database with the application_id {application}, not {APPLICATION_ID}"
            raise self._error(
                f"not a file of cached layers ({other if is_database else 'no SQLite database'}). Set cache_file to "
                "another file, or delete this one if nobody needs it."
            )
        if version != VERSION:
            raise self._error(
                f"cached layers in version {version} of their format. Expected version {VERSION}: delete the file, and "
                "it is created again, or set cache_file to another one."
            )

    def _error(self, message: str) -> CacheError:
        return CacheError(f"{self.path}: {message}")


def _to_row(key: bytes, layers: npt.NDArray[Any]) -> tuple[bytes, bytes, int, bytes]:
    """Return the row of an array: key, shape, checksum, values."""
    shape, data = _SHAPE.pack(*layers.shape), layers.astype("<f4").tobytes()
    return key, shape, _checksum(key, shape, data), data


def _from_row(key: object, shape: object, crc: object, data: object) -> Layers | None:
    """Return the array of a row; None if the row is damaged."""
    if not (isinstance(key, bytes) and isinstance(shape, bytes) and isinstance(data, bytes)):
        return None
    if _checksum(key, shape, data) != crc:
        return None
    return np.frombuffer(data, "<f4").astype(np.float32, copy=False).reshape(_SHAPE.unpack(shape))


def _checksum(key: bytes, shape: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key + shape))
