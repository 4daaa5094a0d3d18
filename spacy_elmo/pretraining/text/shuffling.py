"""The order in which an epoch reads the sentences, computed without a list of all sentences."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]


class BlockShuffle:
    """Shuffles the sentences inside each block, and the blocks among themselves, differently in each epoch.

    A block is a run of consecutive sentences. Memory grows with the number of blocks and with `n_cached`.

    n: number of sentences.
    block: sentences of a block; the last block may have fewer.
    seed: decides the order of every epoch.
    n_cached: number of shuffled blocks that are remembered.
    """

    def __init__(self, n: int, block: int, seed: int, n_cached: int) -> None:
        self.n, self.block, self.seed = n, block, seed
        self.n_blocks = -(-n // block)
        self._blocks = lru_cache(maxsize=4)(self._shuffled_blocks)  # streams are at most a few epochs apart
        self._inside = lru_cache(maxsize=n_cached)(self._shuffled_inside)

    def number(self, epoch: int, position: int) -> int:
        """Return the number of the sentence that is read at a position of an epoch.

        epoch: from 0.
        position: 0 to n - 1.
        """
        blocks, starts = self._blocks(epoch)
        rank = int(np.searchsorted(starts, position, side="right")) - 1
        block = int(blocks[rank])
        return block * self.block + int(self._inside(epoch, block)[position - starts[rank]])

    def _shuffled_blocks(self, epoch: int) -> tuple[Order, Order]:
        """Return the blocks in the order of an epoch, and the position at which each starts; both (blocks,)."""
        blocks = np.random.default_rng([self.seed, epoch]).permutation(self.n_blocks)
        sizes = np.minimum(self.block, self.n - blocks * self.block)
        return blocks, np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def _shuffled_inside(self, epoch: int, block: int) -> Order:
        size = min(self.block, self.n - block * self.block)
        return np.random.default_rng([self.seed, epoch, block]).permutation(size)
