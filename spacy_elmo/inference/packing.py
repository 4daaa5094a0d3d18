"""The order in which the engine stores rows of different lengths: step by step, without padding.

A row is what an LSTM reads from its first word to its last one, with `<S>` and `</S>`.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

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
    def of(cls, lengths: Sequence[int] | npt.NDArray[np.int64]) -> Packing:
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


def gather_rows(table: Tensor, places: Index, out: Tensor) -> None:
    """Set out[k] = table[places[k]].

    table: *Shape:* (any, width).
    places: *Shape:* (rows,).
    out: *Shape:* (rows, width).
    """
    if table.device.type == "cpu":
        np.take(table.numpy(), places, 0, out.numpy(), mode="clip")  # the default writes a copy first
    else:
        torch.index_select(table, 0, torch.from_numpy(places).to(table.device), out=out)


def scatter_rows(table: Tensor, places: Index, values: Tensor) -> None:
    """Set table[places[k]] = values[k].

    table: *Shape:* (any, width).
    places: *Shape:* (rows,), without repetitions.
    values: *Shape:* (rows, width).
    """
    if table.device.type == "cpu":
        table.numpy()[places] = values.numpy()
    else:
        table[torch.from_numpy(places).to(table.device)] = values


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


CPU = torch.device("cpu")
MAX_BYTES = 2**26  # size of the largest tensor that is stored for the next batch
PAGE = 2**21  # bytes of a large page, on x86-64
ADVICE = 14  # Linux's MADV_HUGEPAGE


class Buffers(threading.local):
    """Tensors by name, whose memory each batch reuses. Each thread has separate ones.

    New memory for each batch would cost time, because the system clears its pages. It would also leave gaps that are
    too small for anything else.
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def empty(self, name: str, *shape: int, dtype: torch.dtype = torch.float32, device: torch.device = CPU) -> Tensor:
        """Return a tensor whose values are not set. It is valid until this thread uses the same name again.

        name: name of the buffer. It must always have the same dtype and device.
        shape: shape of the tensor. A tensor of more than MAX_BYTES is not stored for the next batch.
        dtype: type of the tensor.
        device: device of the tensor. On the CPU its address is a multiple of 64 bytes, as that of torch's memory is.
        """
        size = math.prod(shape)
        if size * dtype.itemsize > MAX_BYTES:
            return torch.empty(shape, dtype=dtype, device=device)
        if name not in self._tensors or self._tensors[name].numel() < size:
            self._tensors.pop(name, None)  # free the old memory before new memory is allocated
            self._tensors[name] = torch.empty(size + size // 8, dtype=dtype, device=device)
        return self._tensors[name][:size].view(shape)


def in_large_pages(tensor: Tensor) -> Tensor:
    """Return a contiguous copy of a tensor that starts at a large page, so that Linux may use large pages for it.

    With large pages the processor translates fewer addresses when it reads all weights at each step. On other systems,
    and if the tensor is smaller than two large pages, the tensor itself is returned.

    tensor: a tensor of any shape and strides.
    """
    size = tensor.numel() * tensor.element_size()
    advise = _madvise()
    if advise is None or tensor.device.type != "cpu" or size < 2 * PAGE:
        return tensor
    memory = torch.empty(size + PAGE, dtype=torch.uint8, device=tensor.device)  # not torch's default device
    offset = -memory.data_ptr() % PAGE
    # The end that does not fill a large page stays in small pages: a large one would use more memory than is needed. If
    # the system refuses, the copy is in small pages.
    advise(ctypes.c_void_p(memory.data_ptr() + offset), ctypes.c_size_t(size // PAGE * PAGE), ADVICE)
    return memory[offset : offset + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)


def trim() -> None:
    """Return free memory to the system, if the C library is glibc; else do nothing.

    It is called after large temporary arrays are deleted, because glibc would not return their memory.
    """
    if sys.platform == "linux":
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(ctypes.c_size_t(0))


@lru_cache(maxsize=1)
def _madvise() -> Any:
    return getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
