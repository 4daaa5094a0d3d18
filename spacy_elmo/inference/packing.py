"""The order in which the engine stores rows of different lengths: step by step, without padding.

A row is what an LSTM reads from its first word to its last one, with `<S>` and `</S>`.
"""

import ctypes
import math
import sys
import threading
from collections.abc import Sequence
from functools import cache
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

    unsorted_lengths: Index
    order: Index
    lengths: Index
    active: npt.NDArray[np.int32]
    offsets: Index
    source: Index

    @classmethod
    def of(cls, lengths: Sequence[int] | Index) -> "Packing":
        """Return the packed order of rows. lengths: *Shape:* (rows,), number of positions of each row, at least 1."""
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
    def ends(self) -> Index:
        """The packed index of each row's last position, *Shape:* (rows,), in the order of `order`."""
        last: Index = self.offsets[self.lengths - 1] + np.arange(len(self.order))
        return last


def with_boundaries(words: Index, lengths: Index) -> Index:
    """Return the words of all rows, row by row, with 0 before each row and 1 after it. lengths: words of each row."""
    ends = np.cumsum(lengths + BOUNDARIES)
    index = np.full(len(words) + BOUNDARIES * len(lengths), -1)
    index[ends - lengths - BOUNDARIES], index[ends - 1] = 0, 1
    index[index < 0] = words
    return index


def groups_of(lengths: Index, n_threads: int) -> list[slice]:
    """Split rows of these lengths into groups of about equally many positions, of at least 32 rows on average.

    The two directions of a group run on two threads.
    """
    n = max(1, min(n_threads // 2, len(lengths) // 32))
    goals = np.cumsum(lengths).searchsorted(np.arange(1, n) * lengths.sum() / n) + 1
    bounds = sorted({0, *goals.tolist(), len(lengths)})
    return [slice(begin, end) for begin, end in pairwise(bounds)]


def gather_rows(table: Tensor, places: Index, out: Tensor) -> None:
    """Set out[k] = table[places[k]]."""
    if table.device.type == "cpu":
        np.take(table.numpy(), places, 0, out.numpy(), mode="clip")  # the default writes a copy first
    else:
        torch.index_select(table, 0, torch.from_numpy(places).to(table.device), out=out)


def scatter_rows(table: Tensor, places: Index, values: Tensor) -> None:
    """Set table[places[k]] = values[k]. There are no repetitions in `places`."""
    if table.device.type == "cpu":
        table.numpy()[places] = values.numpy()
    else:
        table[torch.from_numpy(places).to(table.device)] = values


class Plan(NamedTuple):
    """When a layer computes its input sums: some before the first step, the others chunk by chunk.

    precomputed: *Shape:* (n_precomputed,), rows of the layer's input whose input sums are computed before the first
        chunk.
    by_chunk: *Shape:* (n,), rows of the layer's input whose input sums are computed with their chunk, chunk by chunk;
        None: all rows of the input, in their order.
    places: *Shape:* (positions,), int32, the index of each position's input sum in an array that contains the input
        sums of `precomputed`, followed by those of the position's chunk.
    chunks: *Shape:* (chunks, 4), in the order of steps: number of the first step, number of steps, index of the first
        row in `by_chunk`, and number of rows.
    """

    precomputed: Tensor
    by_chunk: Tensor | None
    places: Tensor
    chunks: Index

    @property
    def n_sums(self) -> int:
        """Number of input sums that are in memory at a time, at most: with those of the largest chunk."""
        return len(self.precomputed) + int(self.chunks[:, 3].max())

    def chunks_read(self, backward: bool) -> Index:
        """Return the chunks in the order in which they are read. The step that is read first has the number 0."""
        if not backward:
            return self.chunks
        read, n = self.chunks[::-1].copy(), self.chunks[-1, :2].sum()
        read[:, 0] = n - read[:, 0] - read[:, 1]
        return read


class Batch(NamedTuple):
    """Rows that run together, with the plans of the first layer, where equal words share input sums, and of others."""

    packing: Packing
    first: Plan
    later: Plan


def plan_words(packing: Packing, words: Index, limit: int, most: int, device: torch.device) -> Plan:
    """Return the plan of the first layer, whose input depends on the word alone.

    words: *Shape:* (positions,), the row of each position in the layer's input, in the order of the packing.
    limit: number of words, at most, whose input sums are computed before the first chunk. These are the most frequent
        words that occur more than once.
    most: number of input sums, at most, that a chunk computes. A chunk of one step may compute more.
    """
    times = np.bincount(words)
    repeated = np.flatnonzero(times > 1)
    if len(repeated) > limit:
        repeated = repeated[np.argsort(-times[repeated], kind="stable")[:limit]]
    place_of = np.full(len(times), -1)
    place_of[repeated] = np.arange(len(repeated))
    places = place_of[words]
    is_by_chunk = places < 0
    chunks, in_chunk = _chunked(np.add.reduceat(is_by_chunk, packing.offsets, dtype=np.int64), most)
    places[is_by_chunk] = len(repeated) + in_chunk
    arrays = (repeated, words[is_by_chunk], places.astype(np.int32))
    on_device = [torch.from_numpy(array).to(device) for array in arrays]
    return Plan(on_device[0], on_device[1], on_device[2], chunks)


def plan_positions(packing: Packing, most: int, device: torch.device) -> Plan:
    """Return the plan of a layer after the first, whose input has a row for each position, in the packed order."""
    chunks, in_chunk = _chunked(packing.active, most)
    places = torch.from_numpy(in_chunk.astype(np.int32)).to(device)
    return Plan(torch.empty(0, dtype=torch.int64, device=device), None, places, chunks)


def _chunked(counts: npt.NDArray[np.integer], most: int) -> tuple[Index, Index]:
    """Split steps into chunks of at most `most` rows. A step with more rows is alone. counts: rows of each step.

    Returns the chunks (see `Plan`), and the number of each row in its chunk.
    """
    begins, total = [0], 0
    for step, n in enumerate(counts.tolist()):
        if total + n > most and step > begins[-1]:
            begins.append(step)
            total = 0
        total += n
    steps = np.array([*begins, len(counts)], np.int64)
    rows = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[steps]
    chunks = np.stack([steps[:-1], np.diff(steps), rows[:-1], np.diff(rows)], 1)
    return chunks, np.arange(rows[-1]) - np.repeat(rows[:-1], chunks[:, 3])


CPU = torch.device("cpu")
MAX_BYTES = 2**26  # size of the largest tensor that is stored for the next batch
PAGE = 2**21  # bytes of a large page, on x86-64
ADVICE = 14  # Linux's MADV_HUGEPAGE


class Buffers(threading.local):
    """Tensors by name, whose memory each batch reuses. Each thread has separate ones.

    New memory for each batch would cost time, because the system clears its pages, and leave gaps.
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def empty(self, name: str, *shape: int, dtype: torch.dtype = torch.float32, device: torch.device = CPU) -> Tensor:
        """Return a tensor whose values are not set. It is valid until this thread uses the same name again.

        A name must always have the same dtype and device. A tensor of more than MAX_BYTES is not stored.
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
    and if it is smaller than two large pages, the copy lies anywhere.
    """
    size = tensor.numel() * tensor.element_size()
    advise = _c_function("madvise")
    if advise is None or tensor.device.type != "cpu" or size < 2 * PAGE:
        return tensor.clone(memory_format=torch.contiguous_format)
    memory = torch.empty(size + PAGE, dtype=torch.uint8, device=tensor.device)  # not torch's default device
    offset = -memory.data_ptr() % PAGE
    # The end that does not fill a large page stays in small pages: a large one would use more memory than is needed. If
    # the system refuses, the copy is in small pages.
    advise(ctypes.c_void_p(memory.data_ptr() + offset), ctypes.c_size_t(size // PAGE * PAGE), ADVICE)
    return memory[offset : offset + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)


def trim() -> None:
    """Return the memory of deleted arrays to the system, if the C library is glibc, which would keep it."""
    if malloc_trim := _c_function("malloc_trim"):
        malloc_trim(ctypes.c_size_t(0))


@cache
def _c_function(name: str) -> Any:
    """Return a function of Linux's C library; None if there is none of this name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
