"""Rows of different lengths stored time-major without padding."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Packing(NamedTuple):
    """Step t holds the positions t of the `active[t]` longest rows, from `offsets[t]` on.

    given: *Shape:* (rows,), the rows' lengths; order: the rows from longest to shortest; lengths: theirs. active,
    offsets: (steps,). source: (positions,): where each position's item is, when all rows lie one after another as
    they were given.
    """

    given: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    active: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]

    @classmethod
    def of(cls, lengths: Sequence[int] | npt.NDArray[np.int64]) -> "Packing":
        """lengths: positions of each row, at least 1."""
        given = np.asarray(lengths, np.int64)
        order = np.argsort(-given, kind="stable")
        ended = np.cumsum(np.bincount(given))  # how many rows have at most that many positions
        active = len(given) - ended[: given.max()]
        offsets = np.concatenate([[0], np.cumsum(active)[:-1]])
        begins = np.concatenate([[0], np.cumsum(given)[:-1]])[order]
        steps = np.repeat(np.arange(len(active)), active)
        ranks = np.arange(len(steps)) - offsets[steps]
        return cls(given, order, given[order], active.astype(np.int32), offsets, begins[ranks] + steps)

    @property
    def firsts(self) -> npt.NDArray[np.int64]:
        """The place of each row's first position, rows in this order."""
        return np.arange(len(self.order))

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """The place of each row's last position, rows in this order."""
        last: npt.NDArray[np.int64] = self.offsets[self.lengths - 1] + np.arange(len(self.order))
        return last
