"""Layer 0: the character encoder's vectors of words, the latest kept."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..formats.characters import boundary_ids, words_to_ids
from .row_moves import put_rows, take_rows
from .word_encoder import WordEncoder
from .workers import run_all

# by default: 32 MB at the original size, 8 MB of en_mini
CACHED_WORDS = 16384
LEAST, MOST = 16, 256  # words that are encoded together: less is not worth a thread, more is memory alone


class WordVectors:
    """The character encoder with a bounded cache: a word in use is encoded once for all batches.

    encoder: laid out.
    device: where its weights are.
    size: how many words are held, the least recently used go; 0: none.
    A vector depends on its word alone, but its last bits on the words encoded beside it: a warm cache agrees with an
    empty one within 1e-5. Thread-safe.
    """

    def __init__(self, encoder: WordEncoder, device: torch.device, size: int) -> None:
        self.encoder, self.options, self.device, self.size = encoder, encoder.options, device, size
        self._slots: OrderedDict[str, int] = OrderedDict()
        # grows to `size` rows
        self._table = torch.empty(min(size, 1024), self.options.projection_dim, dtype=torch.float32, device=device)
        self._lock = threading.Lock()
        self.boundary = encoder(torch.from_numpy(boundary_ids(self.options.max_characters)).to(device))

    def __len__(self) -> int:
        return len(self._slots)

    def __call__(self, words: Sequence[str]) -> Tensor:
        """The vectors of `<S>` and `</S>`, and behind them those of distinct words.

        Returns *Shape:* (2 + words, projection_dim), float32.
        """
        vectors = self._room(len(self.boundary) + len(words))
        vectors[: len(self.boundary)] = self.boundary
        self._fill(words, vectors[len(self.boundary) :])
        return vectors

    def _fill(self, words: Sequence[str], vectors: Tensor) -> None:
        if not self.size:
            self._encode(words, vectors)
            return
        with self._lock:
            slots = np.array([self._slots.get(word, -1) for word in words], np.int64)
            for word, slot in zip(words, slots.tolist()):
                if slot >= 0:
                    self._slots.move_to_end(word)
            take_rows(self._table, slots.clip(0), vectors)
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            unknown = [words[i] for i in missing.tolist()]
            new = self._room(len(unknown))
            self._encode(unknown, new)
            put_rows(vectors, missing, new)
            self._keep(unknown, new)

    def _encode(self, words: Sequence[str], vectors: Tensor) -> None:
        ids = torch.from_numpy(words_to_ids(words, self.options.max_characters)).to(self.device)
        n_threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        size = max(LEAST, min(-(-len(words) // n_threads), MOST))

        @torch.no_grad()
        def encode(part: slice) -> None:
            vectors[part] = self.encoder(ids[part])

        parts = [slice(begin, begin + size) for begin in range(0, len(words), size)]
        run_all([partial(encode, part) for part in parts], n_threads)

    def _room(self, rows: int) -> Tensor:
        return self._table.new_empty(rows, self._table.shape[1])

    def _keep(self, words: Sequence[str], vectors: Tensor) -> None:
        """Add words that are not there yet, for the least recently used where it is full."""
        # a text's long tokens are rarely met again, and would make the keys large
        short = [i for i, word in enumerate(words) if len(word) <= self.options.max_characters]
        with self._lock:
            # another thread may have been faster with some
            new = [i for i in short if words[i] not in self._slots][-self.size :]
            slots = []
            for i in new:
                slot = len(self._slots) if len(self._slots) < self.size else self._slots.popitem(last=False)[1]
                self._slots[words[i]] = slot
                slots.append(slot)
            try:
                self._grow()
                values = self._room(len(new))
                take_rows(vectors, np.array(new, np.int64), values)
                put_rows(self._table, np.array(slots, np.int64), values)
            except BaseException:
                self._slots.clear()  # no word may stand for a row that was not written
                raise

    def _grow(self) -> None:
        """Room for all words, in steps that double it."""
        kept = len(self._table)
        if len(self._slots) > kept:
            table = self._room(min(self.size, max(len(self._slots), 2 * kept)))
            take_rows(self._table, np.arange(kept), table[:kept])
            self._table = table
