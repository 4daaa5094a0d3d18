"""The order in which an epoch reads the sentences, without a list of them all."""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]


class BlockShuffle:
    """Shuffles n sentences inside blocks, and the blocks among themselves, anew for every epoch.

    Memory grows with the blocks, and with `kept`, how many shuffled blocks are remembered; the seed decides all.
    """

    def __init__(self, n: int, block: int, seed: int, kept: int) -> None:
        self.n, self.block, self.seed = n, block, seed
        self.n_blocks = -(-n // block)
        self._blocks = lru_cache(maxsize=4)(self._shuffled_blocks)  # streams are at most a few epochs apart
        self._inside = lru_cache(maxsize=kept)(self._shuffled_inside)

    def number(self, epoch: int, position: int) -> int:
        """The sentence that stands at a position, 0 to n - 1, of an epoch."""
        blocks, starts = self._blocks(epoch)
        place = int(np.searchsorted(starts, position, side="right")) - 1
        block = int(blocks[place])
        return block * self.block + int(self._inside(epoch, block)[position - starts[place]])

    def _shuffled_blocks(self, epoch: int) -> tuple[Order, Order]:
        """The blocks in their order, and where each starts."""
        blocks = np.random.default_rng([self.seed, epoch]).permutation(self.n_blocks)
        sizes = np.minimum(self.block, self.n - blocks * self.block)
        return blocks, np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def _shuffled_inside(self, epoch: int, block: int) -> Order:
        size = min(self.block, self.n - block * self.block)
        return np.random.default_rng([self.seed, epoch, block]).permutation(size)
