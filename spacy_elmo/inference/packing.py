"""Rows of different lengths stored time-major without padding."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Packing(NamedTuple):
    """Step t holds the positions t of the `active[t]` longest rows, from `offsets[t]` on.

    order: *Shape:* (rows,), the rows from longest to shortest. active, offsets: one item a step.
    """

    order: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    active: list[int]
    offsets: list[int]

    @classmethod
    def of(cls, lengths: Sequence[int]) -> "Packing":
        """lengths: positions of each row, at least 1."""
        given = np.asarray(lengths, np.int64)
        order = np.argsort(-given, kind="stable")
        ended = np.cumsum(np.bincount(given))  # how many rows have at most that many positions
        active = len(given) - ended[: given.max()]
        offsets = np.concatenate([[0], np.cumsum(active)[:-1]])
        return cls(order, given[order], active.tolist(), offsets.tolist())

    def pack(self, rows: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        """Items of all rows in the packed order. *Shape:* (positions,)."""
        packed = np.empty(int(self.lengths.sum()), np.int64)
        for rank, row in enumerate(self.order):
            packed[self.places(rank)] = rows[row]
        return packed

    def places(self, rank: int) -> npt.NDArray[np.int64]:
        """Where the positions of the row with this rank (0: the longest) lie. *Shape:* (its length,)."""
        return np.asarray(self.offsets[: int(self.lengths[rank])]) + rank
