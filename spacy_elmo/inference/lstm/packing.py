"""The order in which the engine stores rows of different lengths: step by step, without padding.

A row is what an LSTM reads from its first word to its last one, with `<S>` and `</S>`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.int64]

BOUNDARIES = 2  # number of the boundaries, `<S>` and `</S>`; their indices are 0 and 1


class Packing(NamedTuple):
    """The packed order of rows: step t has position t of the `active[t]` longest rows.

    unsorted_lengths: *Shape:* (rows,), the rows' lengths in positions, in the caller's order.
    order: *Shape:* (rows,), indices of the rows from the longest to the shortest.
    lengths: *Shape:* (rows,), the rows' lengths in positions, in the order of `order`.
    active: *Shape:* (steps,), number of rows that have a position at each step.
    offsets: *Shape:* (steps,), index of each step's first position in the packed order.
    source: *Shape:* (positions,), index of each packed position if all rows are concatenated in the caller's order.
    """

    unsorted_lengths: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    active: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]

    @classmethod
    def of(cls, lengths: Sequence[int] | npt.NDArray[np.int64]) -> "Packing":
        """Return the packed order of rows.

        lengths: *Shape:* (rows,), number of positions of each row, at least 1.
        """
        unsorted = np.asarray(lengths, np.int64)
        order = np.argsort(-unsorted, kind="stable")
        ended = np.cumsum(np.bincount(unsorted))  # how many rows have at most that many positions
        active = len(unsorted) - ended[: unsorted.max()]
        offsets = np.concatenate([[0], np.cumsum(active)[:-1]])
        begins = np.concatenate([[0], np.cumsum(unsorted)[:-1]])[order]
        steps = np.repeat(np.arange(len(active)), active)
        ranks = np.arange(len(steps)) - offsets[steps]
        return cls(unsorted, order, unsorted[order], active.astype(np.int32), offsets, begins[ranks] + steps)

    @property
    def places(self) -> Index:
        """The packed index of each position of the concatenated rows, *Shape:* (positions,): `source` inverted."""
        places = np.empty(len(self.source), np.int64)
        places[self.source] = np.arange(len(places))
        return places

    @property
    def firsts(self) -> npt.NDArray[np.int64]:
        """The packed index of each row's first position, *Shape:* (rows,), in the order of `order`."""
        return np.arange(len(self.order))

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """The packed index of each row's last position, *Shape:* (rows,), in the order of `order`."""
        last: npt.NDArray[np.int64] = self.offsets[self.lengths - 1] + np.arange(len(self.order))
        return last


def with_boundaries(words: Index, lengths: Index) -> Index:
    """Return the words of all rows, with 0 before each row and 1 after it.

    words: *Shape:* (words,), indices of the words of all rows, row by row.
    lengths: *Shape:* (rows,), number of words of each row.

    Returns *Shape:* (words + 2 rows,).
    """
    ends = np.cumsum(lengths + BOUNDARIES)
    index = np.full(len(words) + BOUNDARIES * len(lengths), -1)
    index[ends - lengths - BOUNDARIES], index[ends - 1] = 0, 1
    index[index < 0] = words
    return index


def groups_of(lengths: Index, n_threads: int) -> list[slice]:
    """Split rows into groups of about equally many positions, one for each pair of threads.

    The two threads of a pair run the two directions of a group. On average a group has at least 32 rows.

    lengths: *Shape:* (rows,), number of positions of each row.
    n_threads: number of threads.
    """
    n = max(1, min(n_threads // 2, len(lengths) // 32))
    goals = np.cumsum(lengths).searchsorted(np.arange(1, n) * lengths.sum() / n) + 1
    bounds = sorted({0, *goals.tolist(), len(lengths)})
    return [slice(begin, end) for begin, end in pairwise(bounds)]
