"""A file of computed layers that several processes read and add to."""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CacheError, CacheWarning, Errors
from .addresses import refuse_address

Layers = npt.NDArray[np.float32]
APPLICATION_ID, VERSION = 0x654C4D6F, 1
_TABLE = "CREATE TABLE IF NOT EXISTS layers (key BLOB PRIMARY KEY, shape BLOB, crc INTEGER, data BLOB)"
_SHAPE = struct.Struct("<3q")
# older SQLite takes 999 values in a query, and a blob of at most 1e9 bytes
_KEYS, _LARGEST = 500, 2**29
_TIMEOUT = 60.0  # seconds that another process may hold the file


def fork_lock() -> threading.Lock:
    """A lock that no other thread holds in a process that was forked off. For module level: it is never given up."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


# SQLite must have no file open in a fork: each call opens and closes it (50 us), inside of this lock
_LOCK = fork_lock()


class LayersFile:
    """An SQLite file of arrays under keys; what was written once stays.

    path: the file; it is opened, or made where it is missing, at the first use. Safe with threads, processes and forks;
    it pickles. A file that may not be written to is read all the same.

    Raises CacheError, here for an address or a folder, else at the first use, where the file can't be made, is not one
    of this class, of another version, or damaged.
    """

    # The rollback journal: new pages are written once, where WAL writes them twice and takes 1.5 times as long, and
    # it needs no shared memory, so that network and read-only folders will do.

    def __init__(self, path: str | os.PathLike[str]) -> None:
        refuse_address(path, CacheError)
        self.path = os.path.abspath(path)
        self._check_regular()
        self._writes = True
        self._damaged: set[bytes] = set()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Layers]:
        """The arrays of those keys that are there, read-only, (layers, words, width); a damaged one is not there."""
        found: dict[bytes, Layers] = {}
        try:
            with self._open() as connection:
                for start in range(0, len(keys), _KEYS):
                    some = keys[start : start + _KEYS]
                    marks = ",".join("?" * len(some))
                    rows = connection.execute(f"SELECT * FROM layers WHERE key IN ({marks})", some).fetchall()
                    whole = {row[0]: layers for row in rows if (layers := _unpacked(*row)) is not None}
                    if len(whole) < len(rows):  # a damaged row's own key can't be trusted
                        self._damaged.update(set(some) - whole.keys())
                    found.update(whole)
        except sqlite3.Error as error:
            raise CacheError(Errors.CACHE_READ.format(path=self.path, reason=error)) from error
        return found

    def write(self, items: Mapping[bytes, npt.NDArray[Any]]) -> None:
        """Add arrays, (layers, words, width) each, all or none; keys that are there already keep theirs, if whole.

        Warns (CacheWarning) where that fails, and then writes no more.
        """
        rows = [_packed(key, layers) for key, layers in items.items() if layers.nbytes <= _LARGEST]
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
        except sqlite3.Error as error:
            self._writes = False
            warnings.warn(Errors.CACHE_WRITE.format(path=self.path, reason=error), CacheWarning, stacklevel=2)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection to the file, which is made where it is missing or empty."""
        with _LOCK:
            self._check_header()
            with closing(sqlite3.connect(self.path, timeout=_TIMEOUT, isolation_level=None)) as connection:
                connection.text_factory = bytes  # where damage has made text of bytes
                connection.execute("PRAGMA synchronous = NORMAL")
                # also 0 where a process was killed while it made the file
                if connection.execute("PRAGMA user_version").fetchone() == (0,):
                    self._create(connection)
                yield connection

    def _create(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(OSError):  # an empty file is left where there is no room
                if not os.path.getsize(self.path):
                    os.unlink(self.path)
            raise CacheError(Errors.CACHE_CREATE.format(path=self.path, reason=error)) from error

    def _check_regular(self) -> None:
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise CacheError(Errors.CACHE_NOT_REGULAR.format(path=self.path))

    def _check_header(self) -> None:
        """Raise CacheError for what is no such file; SQLite, which could change another database, is not asked."""
        self._check_regular()
        try:
            with open(self.path, "rb") as file:
                header = file.read(100)
        except FileNotFoundError:
            folder = os.path.dirname(self.path)
            if not os.path.isdir(folder):
                raise CacheError(Errors.CACHE_FOLDER.format(path=self.path, folder=folder)) from None
            return
        except OSError as error:
            raise CacheError(Errors.CACHE_READ.format(path=self.path, reason=error)) from error
        if not header:
            return
        if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
            raise CacheError(Errors.CACHE_KIND.format(path=self.path, reason=Errors.CACHE_NO_SQLITE))
        version, application = (int.from_bytes(header[at : at + 4], "big") for at in (60, 68))
        if application != APPLICATION_ID:
            reason = Errors.CACHE_OTHER_SQLITE.format(got=application, expected=APPLICATION_ID)
            raise CacheError(Errors.CACHE_KIND.format(path=self.path, reason=reason))
        if version != VERSION:
            raise CacheError(Errors.CACHE_VERSION.format(path=self.path, got=version, expected=VERSION))


def _packed(key: bytes, layers: npt.NDArray[Any]) -> tuple[bytes, bytes, int, bytes]:
    shape, data = _SHAPE.pack(*layers.shape), layers.astype("<f4").tobytes()
    return key, shape, _checksum(key, shape, data), data


def _unpacked(key: object, shape: object, crc: object, data: object) -> Layers | None:
    """The array of a row; None if that is not what was written."""
    if not (isinstance(key, bytes) and isinstance(shape, bytes) and isinstance(data, bytes)):
        return None
    if _checksum(key, shape, data) != crc:
        return None
    try:
        return np.frombuffer(data, "<f4").astype(np.float32, copy=False).reshape(_SHAPE.unpack(shape))
    except (ValueError, struct.error):
        return None


def _checksum(key: bytes, shape: bytes, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key + shape))
