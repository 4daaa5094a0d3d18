"""Which rows' input products an LSTM layer takes, and when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .packing import Index, Packing


class Chunk(NamedTuple):
    """Some steps, and which of the plan's fresh rows have their products taken for them."""

    steps: slice
    fresh: slice


class Plan(NamedTuple):
    """kept: *Shape:* (n_kept,), rows of the layer's input whose products are taken once for all chunks; fresh: the
    others', chunk after chunk, or None: the input's rows as they are; places: (positions,), int32, where each
    position's product stands among those kept and, behind them, its chunk's; chunks: in the order of steps.
    """

    kept: Tensor
    fresh: Tensor | None
    places: Tensor
    chunks: list[Chunk]

    @property
    def n_kept(self) -> int:
        """Products kept for all chunks."""
        return self.kept.shape[0]

    @property
    def n_fresh(self) -> int:
        """Products of the largest chunk."""
        return max(int(chunk.fresh.stop - chunk.fresh.start) for chunk in self.chunks)

    @property
    def rows(self) -> int:
        """How many products are there at a time."""
        return self.n_kept + self.n_fresh

    def fresh_rows(self, x: Tensor, chunk: Chunk) -> Tensor:
        """Of the layer's input x, those whose products a chunk takes."""
        return x[chunk.fresh] if self.fresh is None else x[self.fresh[chunk.fresh]]

    def table(self, backward: bool) -> Index:
        """Of each chunk, in the order read: the first step and how many, the first of `fresh` and how many.

        backward: the last step is read first, and counted as 0. Returns *Shape:* (chunks, 4).
        """
        n, order = self.chunks[-1].steps.stop, self.chunks[::-1] if backward else self.chunks
        begins = [n - steps.stop if backward else steps.start for steps, _ in order]
        rows = [
            (begin, steps.stop - steps.start, fresh.start, fresh.stop - fresh.start)
            for begin, (steps, fresh) in zip(begins, order)
        ]
        return np.array(rows, np.int64)


class Plans(NamedTuple):
    """Of the first layer, and of the others."""

    first: Plan
    further: Plan


def plan_words(packing: Packing, words: Index, limit: int, most: int, device: torch.device) -> Plan:
    """Of the first layer, whose products depend on the word alone.

    words: *Shape:* (positions,), packed: the row of each in the layer's input. Products of words that occur more than
    once are kept, the most frequent first and at most `limit` of them. most: fresh rows of a chunk.
    """
    times = np.bincount(words)
    kept = np.flatnonzero(times > 1)
    if len(kept) > limit:
        kept = kept[np.argsort(-times[kept], kind="stable")[:limit]]
    row_of = np.full(len(times), -1)
    row_of[kept] = np.arange(len(kept))
    places = row_of[words]
    is_fresh = places < 0
    numbers = np.concatenate([[0], np.cumsum(is_fresh)])  # of fresh ones before each position
    bounds = np.append(packing.offsets, len(words))
    chunks = []
    for steps in _chunks(np.diff(numbers[bounds]), most):
        here = slice(bounds[steps.start], bounds[steps.stop])
        fresh = slice(int(numbers[here.start]), int(numbers[here.stop]))
        places[here][is_fresh[here]] = len(kept) + np.arange(fresh.stop - fresh.start)
        chunks.append(Chunk(steps, fresh))
    arrays = (kept, words[is_fresh], places.astype(np.int32))
    on_device = [torch.from_numpy(array).to(device) for array in arrays]
    return Plan(on_device[0], on_device[1], on_device[2], chunks)


def plan_positions(packing: Packing, most: int, device: torch.device) -> Plan:
    """Of a further layer, whose input has a row for each position. most: rows of a chunk."""
    bounds = np.append(packing.offsets, len(packing.source)).tolist()
    places = np.arange(bounds[-1], dtype=np.int32)
    chunks = []
    for steps in _chunks(packing.active, most):
        here = slice(bounds[steps.start], bounds[steps.stop])
        places[here] -= here.start
        chunks.append(Chunk(steps, here))
    return Plan(torch.empty(0, dtype=torch.int64, device=device), None, torch.from_numpy(places).to(device), chunks)


def _chunks(counts: npt.NDArray[np.integer], most: int) -> list[slice]:
    """Consecutive steps with at most so many rows together (a longer step alone)."""
    begins, total = [0], 0
    for step, n in enumerate(counts.tolist()):
        if total + n > most and step > begins[-1]:
            begins.append(step)
            total = 0
        total += n
    return [slice(begin, end) for begin, end in zip(begins, [*begins[1:], len(counts)])]
