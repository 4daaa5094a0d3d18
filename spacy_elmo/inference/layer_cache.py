"""A cache of layers in memory and in a file."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence

import numpy as np

from ..errors import CacheWarning, Errors, SettingsError, shown
from ..formats.fork_lock import fork_lock
from ..formats.layers_file import LayersFile
from .layers import Layers

_LOCK = fork_lock()  # shared by all caches; each holds it only while it copies some arrays


class LayerCache:
    """Caches arrays by key: all of them in a file, if there is one, and as many as possible in memory.

    A biLM uses a cache only while it is open. A new cache is closed, so that memory is used only from training on.
    It is thread-safe. Pickles and deep copies do not contain the arrays in memory.

    max_bytes: size of the arrays in memory, at most.
    path: path of the file; None: no file.

    Raises SettingsError if max_bytes is not a whole number from 0 on, and CacheError if the file cannot be used.
    """

    # Arrays in memory are never replaced. If memory is full, new arrays are not added. Training reads the corpus in the
    # same order again and again: a cache that drops its oldest arrays would drop each of them before its next use.

    def __init__(self, max_bytes: int, path: str | None = None) -> None:
        if not isinstance(max_bytes, int) or isinstance(max_bytes, bool) or max_bytes < 0:
            raise SettingsError(Errors.CACHE_BYTES.format(got=shown(max_bytes)))
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
        self.clear()

    def check_file(self) -> None:
        """Open the file or create it, if there is a path. Raises CacheError if it cannot be used."""
        if self._file is not None:
            self._file.read([])

    def get(self, keys: Sequence[bytes]) -> list[Layers | None]:
        """Return the array of each key, *Shape:* (layers, words, width), read-only; None if there is none.

        keys: the keys, see `row_key`.

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
        """Add copies of arrays to the cache.

        keys: the keys, see `row_key`.
        arrays: *Shape:* (layers, words, width) for each key.

        Raises CacheError if the file cannot be written.
        """
        items = dict(zip(keys, arrays))
        self._add_to_memory(items.items())
        if self._file is not None:
            self._file.write(items)

    def clear(self) -> None:
        """Remove all arrays from memory. The file is not changed."""
        with _LOCK:
            self._memory.clear()
            self.nbytes = 0

    def _add_to_memory(self, items: Iterable[tuple[bytes, Layers]]) -> None:
        with _LOCK:
            for key, layers in items:
                size = layers.size * np.dtype(np.float32).itemsize
                if key in self._memory:
                    continue
                if self.nbytes + size > self.max_bytes:
                    self._warn_full()
                else:
                    copied = np.array(layers, np.float32, order="C")
                    copied.setflags(write=False)
                    self._memory[key] = copied
                    self.nbytes += size

    def _warn_full(self) -> None:
        """Warn once that memory is full, unless there is a file or max_bytes is 0."""
        if self._file is None and self.max_bytes and not self._has_warned:
            self._has_warned = True
            warnings.warn(Errors.CACHE_FULL.format(got=self.max_bytes // 2**20), CacheWarning, stacklevel=2)


def row_key(fingerprint: bytes, words: Sequence[str], before: bytes = b"") -> bytes:
    """Return the key of a row of words that a biLM reads, 32 bytes.

    fingerprint: digest of the biLM and its settings.
    words: the words.
    before: key of the row after which this row starts, if the state is carried; b"": it starts from the zero state.
    """
    parts = [fingerprint, before, *(word.encode("utf8", "surrogatepass") for word in words)]
    # the length of each part is written before it, so that different parts never give the same bytes
    return hashlib.blake2b(b"".join(len(part).to_bytes(8, "little") + part for part in parts), digest_size=32).digest()
