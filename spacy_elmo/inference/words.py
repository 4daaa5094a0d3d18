"""Layer 0: the character encoder's vectors of words, with a cache of the most recently used ones."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..formats.characters import Ids, boundary_ids, words_to_ids
from ..formats.options import BiLMOptions
from ..locks import fork_lock
from ..modules.char_cnn import character_table, highway_sum_in_place, pool
from .linear import PrepackedLinear
from .packing import gather_rows, scatter_rows
from .workers import run_all

PREFIX = "char_cnn."  # the names of the encoder's weights among the biLM's start with it
ROWS = 128  # usual number of words
PART = 128  # columns of a matrix in each part (see COLUMNS in linear.py)
ROW_MULTIPLE = 16  # of the matrix multiplications
# Default of the setting cached_words; embed and ElmoEmbedder always use it. 32 MB at the original size, 16 with en_core
CACHED_WORDS = 16384
# Number of words that are encoded together. Fewer are not worth a thread. More only need more memory.
MIN_WORDS, MAX_WORDS = 16, 256
_LOCK = fork_lock()  # shared by all caches; each holds it only while it copies vectors


class WordVectors:
    """The character encoder with a cache of bounded size, so that a frequent word is encoded once for all batches.

    A vector depends only on its word, except for rounding, which also depends on the words that are encoded with it.
    So vectors from the cache agree within 1e-5 with those that are computed again. It is thread-safe.

    encoder: the character encoder, whose weights are on `device`.
    size: number of words in the cache, at most. The least recently used ones are dropped. 0: no cache.
    """

    def __init__(self, encoder: "WordEncoder", device: torch.device, size: int) -> None:
        self.encoder, self.options, self.device, self.size = encoder, encoder.options, device, size
        self._slots: OrderedDict[str, int] = OrderedDict()
        # the vectors of the cached words; on the CPU, the system gives memory only to rows that have been written
        self._table = torch.empty(size, self.options.projection_dim, dtype=torch.float32, device=device)
        ids = boundary_ids(self.options.max_characters)
        self.boundary = self._new_rows(len(ids))
        self._encode(ids, self.boundary)

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        """Empty the cache. The vectors that follow have the same bits as those of a new one."""
        with _LOCK:
            self._slots.clear()

    def __call__(self, words: Sequence[str]) -> Tensor:
        """Return the vectors of `<S>`, `</S>` and distinct words, *Shape:* (2 + words, projection_dim), float32."""
        vectors = self._new_rows(len(self.boundary) + len(words))
        vectors[: len(self.boundary)] = self.boundary
        self._fill(words, vectors[len(self.boundary) :])
        return vectors

    def _fill(self, words: Sequence[str], vectors: Tensor) -> None:
        if not self.size:
            self._encode(words_to_ids(words, self.options.max_characters), vectors)
            return
        with _LOCK:
            slots = np.array([self._slots.get(word, -1) for word in words], np.int64)
            for word, slot in zip(words, slots.tolist()):
                if slot >= 0:
                    self._slots.move_to_end(word)
            gather_rows(self._table, slots.clip(0), vectors)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            unknown = [words[i] for i in missing.tolist()]
            new = self._new_rows(len(unknown))
            self._encode(words_to_ids(unknown, self.options.max_characters), new)
            scatter_rows(vectors, missing, new)
            self._add_to_cache(unknown, new)

    def _encode(self, ids: Ids, vectors: Tensor) -> None:
        on_device = torch.from_numpy(ids).to(self.device)
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        size = max(MIN_WORDS, min(-(-len(ids) // n_threads), MAX_WORDS))

        @torch.no_grad()
        def encode(part: slice) -> None:
            vectors[part] = self.encoder(on_device[part])

        parts = [slice(first, first + size) for first in range(0, len(ids), size)]
        run_all([partial(encode, part) for part in parts], n_threads)

    def _new_rows(self, rows: int) -> Tensor:
        return self._table.new_empty(rows, self._table.shape[1])

    def _add_to_cache(self, words: Sequence[str], vectors: Tensor) -> None:
        """Add words that are not in the cache. If it is full, they replace the least recently used ones."""
        # long tokens rarely occur again, and would make the keys large
        short = [i for i, word in enumerate(words) if len(word) <= self.options.max_characters]
        with _LOCK:
            # another thread may have added some of them in the meantime
            new = [i for i in short if words[i] not in self._slots][-self.size :]
            slots = []
            for i in new:
                slot = len(self._slots) if len(self._slots) < self.size else self._slots.popitem(last=False)[1]
                self._slots[words[i]] = slot
                slots.append(slot)
            try:
                values = self._new_rows(len(new))
                gather_rows(vectors, np.array(new, np.int64), values)
                scatter_rows(self._table, np.array(slots, np.int64), values)
            except BaseException:
                self._slots.clear()  # some rows may not have been written
                raise


class WordEncoder:
    """Computes the vectors of layer 0 from character ids.

    weights: the biLM's weights by parameter name, which are copied.
    dtype: type of the matrix multiplications of the highway layers and the projection, float32 or bfloat16.
    """

    def __init__(self, options: BiLMOptions, weights: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        self.options, self.dtype = options, dtype

        def linear(name: str) -> PrepackedLinear:
            return PrepackedLinear(weights[f"{name}.weight"], weights[f"{name}.bias"], ROWS, dtype, PART)

        highways = [f"{PREFIX}highways.{k}" for k in range(options.n_highway)]
        self._highways = [(linear(f"{name}.carry"), linear(f"{name}.transform")) for name in highways]
        self._projection = linear(f"{PREFIX}projection") if f"{PREFIX}projection.weight" in weights else None
        self._embedding = weights[f"{PREFIX}embedding.weight"].clone()
        names = [f"{PREFIX}convolutions.{k}" for k in range(len(options.filters))]
        self._filters = [(weights[f"{name}.weight"].clone(), weights[f"{name}.bias"].clone()) for name in names]
        self._tables = [character_table(self._embedding, weight) for weight, _ in self._filters]

    def __call__(self, ids: Tensor) -> Tensor:
        """Return the vectors of words, *Shape:* (words, projection_dim), float32. ids: *Shape:* (words, characters)."""
        if not len(ids):
            return ids.new_zeros(0, self.options.projection_dim, dtype=torch.float32)
        # padded once for all matrix multiplications; PrepackedLinear would pad each of them
        x = pool(self.options, self._embedding, self._filters, ids, self._tables).float()
        x = F.pad(x, (0, 0, 0, -len(ids) % ROW_MULTIPLE))
        for carry, transform in self._highways:
            x = highway_sum_in_place(x, carry(x), transform(x))
        return (x if self._projection is None else self._projection(x))[: len(ids)]
