"""When an LSTM layer computes its input sums, and for which rows of its input.

The input sum of a row is x W_x + bias, of all four gates: *Shape:* (4 dim,). The input sums of all positions of a batch
would need too much memory. So the steps are split into chunks, and the input sums of one chunk are computed just before
its steps. In the first layer, the input sum of a word that occurs several times is computed once for all chunks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .packing import Index, Packing


class Chunk(NamedTuple):
    """Consecutive steps whose input sums are computed together.

    steps: the steps.
    rows: the part of the plan's `by_chunk` whose input sums are computed for these steps.
    """

    steps: slice
    rows: slice


class Plan(NamedTuple):
    """When a layer computes its input sums.

    precomputed: *Shape:* (n_precomputed,), rows of the layer's input whose input sums are computed before the first
        chunk.
    by_chunk: *Shape:* (n,), rows of the layer's input whose input sums are computed with their chunk, chunk by chunk;
        None: all rows of the input, in their order.
    places: *Shape:* (positions,), int32, the index of each position's input sum in an array that contains the input
        sums of `precomputed`, followed by those of the position's chunk.
    chunks: in the order of steps.
    """

    precomputed: Tensor
    by_chunk: Tensor | None
    places: Tensor
    chunks: list[Chunk]

    @property
    def n_precomputed(self) -> int:
        """Number of input sums that are computed before the first chunk."""
        return self.precomputed.shape[0]

    @property
    def n_largest_chunk(self) -> int:
        """Number of input sums that the largest chunk computes."""
        return max(int(chunk.rows.stop - chunk.rows.start) for chunk in self.chunks)

    @property
    def n_sums(self) -> int:
        """Number of input sums that are in memory at a time, at most."""
        return self.n_precomputed + self.n_largest_chunk

    def rows_of(self, x: Tensor, chunk: Chunk) -> Tensor:
        """Return the rows of a layer's input whose input sums a chunk computes, *Shape:* (n, input).

        x: *Shape:* (rows, input), the layer's input.
        chunk: one of `chunks`.
        """
        return x[chunk.rows] if self.by_chunk is None else x[self.by_chunk[chunk.rows]]

    def table(self, backward: bool) -> Index:
        """Return the chunks as numbers, in the order in which they are read.

        backward: whether the last step is read first; that step then has the number 0.

        Returns *Shape:* (chunks, 4): number of the first step, number of steps, index of the first row in `by_chunk`,
        and number of rows.
        """
        n, order = self.chunks[-1].steps.stop, self.chunks[::-1] if backward else self.chunks
        begins = [n - steps.stop if backward else steps.start for steps, _ in order]
        numbers = [
            (begin, steps.stop - steps.start, rows.start, rows.stop - rows.start)
            for begin, (steps, rows) in zip(begins, order)
        ]
        return np.array(numbers, np.int64)


class Plans(NamedTuple):
    """The plans of all layers.

    first: the plan of the first layer, in which equal words share an input sum.
    later: the plan of every other layer.
    """

    first: Plan
    later: Plan


def plan_words(packing: Packing, words: Index, limit: int, most: int, device: torch.device) -> Plan:
    """Return the plan of the first layer, whose input depends on the word alone.

    packing: the order of the positions.
    words: *Shape:* (positions,), the row of each position in the layer's input, in the order of the packing.
    limit: number of words, at most, whose input sums are computed before the first chunk. These are the most frequent
        words that occur more than once.
    most: number of input sums, at most, that a chunk computes. A chunk of one step may compute more.
    device: where the plan's tensors are.
    """
    times = np.bincount(words)
    repeated = np.flatnonzero(times > 1)
    if len(repeated) > limit:
        repeated = repeated[np.argsort(-times[repeated], kind="stable")[:limit]]
    place_of = np.full(len(times), -1)
    place_of[repeated] = np.arange(len(repeated))
    places = place_of[words]
    is_by_chunk = places < 0
    numbers = np.concatenate([[0], np.cumsum(is_by_chunk)])  # how many of them are before each position
    bounds = np.append(packing.offsets, len(words))
    chunks = []
    for steps in _chunks(np.diff(numbers[bounds]), most):
        here = slice(bounds[steps.start], bounds[steps.stop])
        rows = slice(int(numbers[here.start]), int(numbers[here.stop]))
        places[here][is_by_chunk[here]] = len(repeated) + np.arange(rows.stop - rows.start)
        chunks.append(Chunk(steps, rows))
    arrays = (repeated, words[is_by_chunk], places.astype(np.int32))
    on_device = [torch.from_numpy(array).to(device) for array in arrays]
    return Plan(on_device[0], on_device[1], on_device[2], chunks)


def plan_positions(packing: Packing, most: int, device: torch.device) -> Plan:
    """Return the plan of a layer after the first, whose input has a row for each position.

    packing: the order of the positions, which is the order of the input's rows.
    most: number of rows of a chunk, at most. A chunk of one step may have more.
    device: where the plan's tensors are.
    """
    bounds = np.append(packing.offsets, len(packing.source)).tolist()
    places = np.arange(bounds[-1], dtype=np.int32)
    chunks = []
    for steps in _chunks(packing.active, most):
        here = slice(bounds[steps.start], bounds[steps.stop])
        places[here] -= here.start
        chunks.append(Chunk(steps, here))
    return Plan(torch.empty(0, dtype=torch.int64, device=device), None, torch.from_numpy(places).to(device), chunks)


def _chunks(counts: npt.NDArray[np.integer], most: int) -> list[slice]:
    """Split steps into consecutive ones that have at most `most` rows together.

    counts: *Shape:* (steps,), rows of each step. A step with more than `most` rows is alone.
    most: number of rows.
    """
    begins, total = [0], 0
    for step, n in enumerate(counts.tolist()):
        if total + n > most and step > begins[-1]:
            begins.append(step)
            total = 0
        total += n
    return [slice(begin, end) for begin, end in zip(begins, [*begins[1:], len(counts)])]
