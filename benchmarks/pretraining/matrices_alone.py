"""The matrix multiplications of one training step: their operations, and the seconds that they take alone."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import NamedTuple

import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules.char_cnn import N_IDS
from spacy_elmo.modules.softmax import MAX_BLOCK_ROWS

REPEATS = 3  # the fastest counts


class Multiplication(NamedTuple):
    """Matrices of *Shape:* (m, k) and (k, n), multiplied `times` times."""

    m: int
    k: int
    n: int
    times: int

    @property
    def flop(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.k * self.n * self.times


def multiplications_of(
    options: BiLMOptions, streams: int, steps: int, negatives: int, distinct: int, threads: int
) -> list[Multiplication]:
    """List the multiplications of one thread, forward and back.

    options: sizes of the network. streams, steps: rows and positions of a batch. negatives: of the softmax. distinct:
    distinct words of a batch. threads: of the step.
    """
    groups = max(1, threads // 2)
    directions = 2 if threads == 1 else 1
    batch, width, dim = streams // groups, options.projection_dim, options.dim
    rows, words, filters = batch * steps, -(-distinct // threads), options.n_filters
    found: list[Multiplication] = []
    for w, n in options.filters:  # the table and its two gradients
        sizes = (N_IDS, options.char_dim, w * n)
        found += [
            Multiplication(*sizes, 1),
            Multiplication(sizes[0], sizes[2], sizes[1], 1),
            Multiplication(sizes[1], sizes[0], sizes[2], 1),
        ]
    for inner, outer, times in (
        (filters, filters, 2 * options.n_highway),
        (filters, width, options.has_char_projection),
    ):
        found += [Multiplication(words, inner, outer, times), Multiplication(words, outer, inner, times)]
        found += [Multiplication(outer, words, inner, times)]
    layers = options.n_layers * directions
    both = 2 * width  # one matrix multiplies input and state together
    found += [
        Multiplication(batch, both, 4 * dim, layers * steps),
        Multiplication(batch, 4 * dim, both, layers * steps),
    ]
    found += [Multiplication(both + 1, rows, 4 * dim, layers)]
    if options.has_lstm_projection:
        found += [Multiplication(batch, dim, width, layers * steps), Multiplication(batch, width, dim, layers * steps)]
        found += [Multiplication(width + 1, rows, dim, layers)]
    for start in range(0, rows, MAX_BLOCK_ROWS):
        block = min(MAX_BLOCK_ROWS, rows - start)
        found += [
            Multiplication(block, width, negatives, directions),
            Multiplication(block, negatives, width, directions),
        ]
        found += [Multiplication(width + 1, block, negatives, directions)]
    return [multiplication for multiplication in found if multiplication.times]


def seconds_alone(multiplications: list[Multiplication], dtype: torch.dtype, threads: int) -> float:
    """Measure seconds if all threads do all these multiplications at the same time, each on one core.

    multiplications: of a thread. dtype: of the matrices. threads: how many.
    """
    barrier = Barrier(threads)

    def run(_: int) -> float:
        torch.set_num_threads(1)
        arrays = [
            (torch.randn(p.m, p.k).to(dtype), torch.randn(p.k, p.n).to(dtype), torch.empty(p.m, p.n, dtype=dtype))
            for p in multiplications
        ]
        times = []
        for _ in range(REPEATS + 1):
            barrier.wait()
            begin = time.perf_counter()
            for multiplication, (a, b, out) in zip(multiplications, arrays):
                for _ in range(multiplication.times):
                    torch.mm(a, b, out=out)
            times.append(time.perf_counter() - begin)
        return min(times[1:])

    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(run, range(threads)))
