"""Layer 0: the character encoder's vectors of words, the latest kept."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from ..formats.characters import words_to_ids
from ..modules import BiLM
from .word_encoder import WordEncoder
from .workers import run_all

# by default: 32 MB at the original size, 8 MB of en_mini
CACHED_WORDS = 16384
LEAST, MOST = 16, 256  # words that are encoded together: less is not worth a thread, more is memory alone


class WordVectors:
    """The character encoder with a bounded cache: a word in use is encoded once for all batches.

    bilm: its weights must not change; dtype: see WordEncoder.
    size: how many words are kept, the least recently used go; 0: none.
    A vector depends on its word alone, but its last bits on the words encoded beside it: a warm cache agrees with an
    empty one within 1e-5. Thread-safe.
    """

    def __init__(self, bilm: BiLM, dtype: torch.dtype, size: int) -> None:
        self.bilm, self.size, self.encoder = bilm, size, WordEncoder(bilm.char_cnn, dtype)
        self._slots: OrderedDict[str, int] = OrderedDict()
        boundary = bilm.boundary
        # grows to `size` rows
        self._table = torch.empty(
            min(size, 1024), bilm.options.projection_dim, dtype=torch.float32, device=boundary.device
        )
        self._lock = threading.Lock()
        self.boundary = self.encoder(boundary)

    def __len__(self) -> int:
        return len(self._slots)

    def __call__(self, words: Sequence[str]) -> Tensor:
        """Vectors of distinct words. *Shape:* (words, projection_dim), float32."""
        if not self.size:
            return self._encode(words)
        with self._lock:
            slots = [self._slots.get(word, -1) for word in words]
            for word, slot in zip(words, slots):
                if slot >= 0:
                    self._slots.move_to_end(word)
            vectors = self._table[self._index(slots).clamp(min=0)]
        missing = [i for i, slot in enumerate(slots) if slot < 0]
        if missing:
            new = self._encode([words[i] for i in missing])
            vectors[self._index(missing)] = new
            self._keep([words[i] for i in missing], new)
        return vectors

    def _encode(self, words: Sequence[str]) -> Tensor:
        device = self.bilm.boundary.device
        ids = torch.from_numpy(words_to_ids(words, self.bilm.options.max_characters)).to(device)
        n_threads = torch.get_num_threads() if device.type == "cpu" else 1
        most = -(-len(words) // n_threads)
        parts = ids.split(max(LEAST, min(most, MOST)))
        vectors = [ids] * len(parts)

        @torch.no_grad()
        def encode(number: int) -> None:
            vectors[number] = self.encoder(parts[number])

        run_all([partial(encode, number) for number in range(len(parts))], n_threads)
        return torch.cat(vectors)

    def _keep(self, words: Sequence[str], vectors: Tensor) -> None:
        """Add words that are not there yet, for the least recently used where it is full."""
        # a text's long tokens are rarely met again, and would make the keys large
        short = [i for i, word in enumerate(words) if len(word) <= self.bilm.options.max_characters]
        with self._lock:
            # another thread may have been faster with some
            new = [i for i in short if words[i] not in self._slots][-self.size :]
            slots = []
            for i in new:
                slot = len(self._slots) if len(self._slots) < self.size else self._slots.popitem(last=False)[1]
                self._slots[words[i]] = slot
                slots.append(slot)
            try:
                self._write(slots, vectors[self._index(new)])
            except BaseException:
                self._slots.clear()  # no word may stand for a row that was not written
                raise

    def _write(self, slots: list[int], vectors: Tensor) -> None:
        if len(self._slots) > len(self._table):
            rows = min(self.size, max(len(self._slots), 2 * len(self._table)))
            more = self._table.new_empty(rows - len(self._table), self._table.shape[1])
            self._table = torch.cat([self._table, more])
        self._table[self._index(slots)] = vectors

    def _index(self, places: list[int]) -> Tensor:
        return torch.tensor(places, dtype=torch.int64, device=self._table.device)
