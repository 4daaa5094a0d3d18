"""Layers that were computed once, kept in memory and in a file."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import CacheWarning, Errors, SettingsError, shown
from ..formats.layers_file import LayersFile, fork_lock
from .layers import Layers

# of all caches, held for no longer than it takes to copy some arrays
_LOCK = fork_lock()


class LayerCache:
    """Arrays under keys: at most max_bytes of them in memory, all of them in the file at path, if there is one.

    Whoever runs a biLM looks into a cache that is open. A new one is closed: memory is used once training begins.
    Thread-safe; it pickles and deep-copies without what is in memory.
    Raises SettingsError for max_bytes, CacheError for the file: see LayersFile.
    """

    # What is in memory stays, and what comes when it is full is not kept: training runs over the corpus in the same
    # order again and again, where a cache that lets its oldest entries go would have lost each before it is asked for.

    def __init__(self, max_bytes: int, path: str | None = None) -> None:
        if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 0:
            raise SettingsError(Errors.CACHE_BYTES.format(got=shown(max_bytes)))
        self.max_bytes, self.path, self.nbytes, self.is_open = max_bytes, path, 0, False
        self._memory: dict[bytes, Layers] = {}
        self._file = None if path is None else LayersFile(path)
        self._said_full = False

    def __len__(self) -> int:
        """How many are in memory."""
        return len(self._memory)

    def __reduce__(self) -> tuple[type[LayerCache], tuple[int, str | None], dict[str, bool]]:
        return LayerCache, (self.max_bytes, self.path), {"is_open": self.is_open}

    def open(self) -> None:
        """Be looked into from now on."""
        self.is_open = True

    def close(self) -> None:
        """Empty the memory, and be looked into no more. The file stays."""
        self.is_open = False
        self.clear()

    def check_file(self) -> None:
        """Open the file at path once, if there is one, or make it. Raises CacheError if it can't be used."""
        if self._file is not None:
            self._file.read([])

    def get(self, keys: Sequence[bytes]) -> list[Layers | None]:
        """The array of each key, read-only, (layers, words, width); None where there is none."""
        found = [self._memory.get(key) for key in keys]
        missing = {key for key, layers in zip(keys, found) if layers is None}
        if self._file is None or not missing:
            return found
        read = self._file.read(sorted(missing))
        self._keep(read.items())
        return [read.get(key) if layers is None else layers for key, layers in zip(keys, found)]

    def put(self, keys: Sequence[bytes], arrays: Sequence[Layers]) -> None:
        """Keep copies of arrays, (layers, words, width) each, under their keys."""
        items = dict(zip(keys, arrays))
        self._keep(items.items())
        if self._file is not None:
            self._file.write(items)

    def clear(self) -> None:
        """Empty the memory; the file stays."""
        with _LOCK:
            self._memory.clear()
            self.nbytes = 0

    def _keep(self, items: Iterable[tuple[bytes, Layers]]) -> None:
        with _LOCK:
            for key, layers in items:
                size = layers.size * np.dtype(np.float32).itemsize
                if key in self._memory:
                    continue
                if self.nbytes + size > self.max_bytes:
                    self._say_full()
                else:
                    kept = np.array(layers, np.float32, order="C")
                    kept.setflags(write=False)
                    self._memory[key] = kept
                    self.nbytes += size

    def _say_full(self) -> None:
        """Once, where what does not fit is lost: not for a cache that was meant to keep nothing."""
        if self._file is None and self.max_bytes and not self._said_full:
            self._said_full = True
            warnings.warn(Errors.CACHE_FULL.format(got=self.max_bytes // 2**20), CacheWarning, stacklevel=2)


def row_key(fingerprint: bytes, words: Sequence[str], before: bytes = b"") -> bytes:
    """The key, 32 bytes, of a row of words that a biLM reads.

    fingerprint: of the biLM and its settings; before: the key of the row whose state is carried into this one.
    """
    parts = [fingerprint, before, *(word.encode("utf8", "surrogatepass") for word in words)]
    # each part's length stands before it, so that no other parts make the same bytes
    return hashlib.blake2b(b"".join(len(part).to_bytes(8, "little") + part for part in parts), digest_size=32).digest()
