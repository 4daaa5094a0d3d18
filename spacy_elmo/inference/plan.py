"""Which rows' input products an LSTM layer takes, and when."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .packing import Index, Packing

Rows = Tensor | slice


class Chunk(NamedTuple):
    """Some steps. fresh: the rows of the layer's input whose products are taken for them; places: *Shape:*
    (positions,), int32, where each position's product stands among those kept and, behind them, the fresh ones.
    """

    steps: slice
    fresh: Rows
    places: Tensor


class Plan(NamedTuple):
    """kept: rows of the layer's input whose products are taken once for all chunks; chunks: in the order of steps."""

    kept: Rows
    n_kept: int
    n_fresh: int  # of the largest chunk
    chunks: list[Chunk]

    @property
    def rows(self) -> int:
        """How many products are there at a time."""
        return self.n_kept + self.n_fresh


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
    counts, chunks = np.diff(numbers[bounds]), []
    for steps in _chunks(counts, most):
        here = slice(bounds[steps.start], bounds[steps.stop])
        fresh = is_fresh[here]
        behind = len(kept) + numbers[here] - numbers[here.start]
        rows = torch.from_numpy(np.where(fresh, behind, places[here]).astype(np.int32))
        chunks.append(Chunk(steps, torch.from_numpy(words[here][fresh]).to(device), rows.to(device)))
    n_fresh = max(int(counts[chunk.steps].sum()) for chunk in chunks)
    return Plan(torch.from_numpy(kept).to(device), len(kept), n_fresh, chunks)


def plan_positions(packing: Packing, most: int, device: torch.device) -> Plan:
    """Of a further layer, whose input has a row for each position. most: rows of a chunk."""
    bounds = np.append(packing.offsets, len(packing.source)).tolist()
    chunks = []
    for steps in _chunks(packing.active, most):
        begin, end = bounds[steps.start], bounds[steps.stop]
        places = torch.arange(end - begin, dtype=torch.int32, device=device)
        chunks.append(Chunk(steps, slice(begin, end), places))
    n_fresh = max(int(packing.active[chunk.steps].sum()) for chunk in chunks)
    return Plan(slice(0), 0, n_fresh, chunks)


def _chunks(counts: npt.NDArray[np.integer], most: int) -> list[slice]:
    """Consecutive steps with at most so many rows together (a longer step alone)."""
    begins, total = [0], 0
    for step, n in enumerate(counts.tolist()):
        if total + n > most and step > begins[-1]:
            begins.append(step)
            total = 0
        total += n
    return [slice(begin, end) for begin, end in zip(begins, [*begins[1:], len(counts)])]
