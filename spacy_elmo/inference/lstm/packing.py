"""Rows of different lengths stored time-major without padding."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.int64]

BOUNDARIES = 2  # `<S>` and `</S>`, the first two words of all


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
    def places(self) -> Index:
        """The place of each position, *Shape:* (positions,), when all rows lie one after another as they were given."""
        places = np.empty(len(self.source), np.int64)
        places[self.source] = np.arange(len(places))
        return places

    @property
    def firsts(self) -> npt.NDArray[np.int64]:
        """The place of each row's first position, rows in this order."""
        return np.arange(len(self.order))

    @property
    def ends(self) -> npt.NDArray[np.int64]:
        """The place of each row's last position, rows in this order."""
        last: npt.NDArray[np.int64] = self.offsets[self.lengths - 1] + np.arange(len(self.order))
        return last


def with_boundaries(words: Index, lengths: Index) -> Index:
    """The rows' words, one row after another, with 0 before and 1 behind each row.

    words: *Shape:* (words,); lengths: (rows,), words of each. Returns (words + 2 rows,).
    """
    ends = np.cumsum(lengths + BOUNDARIES)
    index = np.full(len(words) + BOUNDARIES * len(lengths), -1)
    index[ends - lengths - BOUNDARIES], index[ends - 1] = 0, 1
    index[index < 0] = words
    return index


def groups_of(lengths: Index, n_threads: int) -> list[slice]:
    """Rows that run together: as many groups of about as many positions as there are pairs of threads.

    lengths: *Shape:* (rows,), positions of each.
    """
    n = max(1, min(n_threads // 2, len(lengths) // 32))
    goals = np.cumsum(lengths).searchsorted(np.arange(1, n) * lengths.sum() / n) + 1
    bounds = sorted({0, *goals.tolist(), len(lengths)})
    return [slice(begin, end) for begin, end in pairwise(bounds)]
