"""The matrix products of one training step: how many operations, and how fast this machine is at them alone."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import NamedTuple

import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules.char_cnn import N_IDS
from spacy_elmo.modules.softmax.sampled import MAX_BLOCK_ROWS

REPEATS = 3  # the fastest counts


class Product(NamedTuple):
    """(m, k) by (k, n), so many times."""

    m: int
    k: int
    n: int
    times: int

    @property
    def flop(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.k * self.n * self.times


def products_of(
    options: BiLMOptions, streams: int, steps: int, negatives: int, distinct: int, threads: int
) -> list[Product]:
    """Those of one thread, forward and back, as modules/ and training/step.py take them. distinct: words."""
    groups = max(1, threads // 2)
    directions = 2 if threads == 1 else 1
    batch, width, dim = streams // groups, options.projection_dim, options.dim
    rows, words, filters = batch * steps, -(-distinct // threads), options.n_filters
    found: list[Product] = []
    for w, n in options.filters:  # the table and its two gradients
        sizes = (N_IDS, options.char_dim, w * n)
        found += [
            Product(*sizes, 1),
            Product(sizes[0], sizes[2], sizes[1], 1),
            Product(sizes[1], sizes[0], sizes[2], 1),
        ]
    for inner, outer, times in (
        (filters, filters, 2 * options.n_highway),
        (filters, width, options.has_char_projection),
    ):
        found += [Product(words, inner, outer, times), Product(words, outer, inner, times)]
        found += [Product(outer, words, inner, times)]
    layers = options.n_layers * directions
    both = 2 * width  # input and state go through one product a step
    found += [Product(batch, both, 4 * dim, layers * steps), Product(batch, 4 * dim, both, layers * steps)]
    found += [Product(both + 1, rows, 4 * dim, layers)]
    if options.has_lstm_projection:
        found += [Product(batch, dim, width, layers * steps), Product(batch, width, dim, layers * steps)]
        found += [Product(width + 1, rows, dim, layers)]
    for start in range(0, rows, MAX_BLOCK_ROWS):
        block = min(MAX_BLOCK_ROWS, rows - start)
        found += [Product(block, width, negatives, directions), Product(block, negatives, width, directions)]
        found += [Product(width + 1, block, negatives, directions)]
    return [product for product in found if product.times]


def seconds_alone(products: list[Product], dtype: torch.dtype, threads: int) -> float:
    """All threads take all these products at the same time, each on one core."""
    barrier = Barrier(threads)

    def run(_: int) -> float:
        torch.set_num_threads(1)
        arrays = [
            (torch.randn(p.m, p.k).to(dtype), torch.randn(p.k, p.n).to(dtype), torch.empty(p.m, p.n, dtype=dtype))
            for p in products
        ]
        times = []
        for _ in range(REPEATS + 1):
            barrier.wait()
            begin = time.perf_counter()
            for product, (a, b, out) in zip(products, arrays):
                for _ in range(product.times):
                    torch.mm(a, b, out=out)
            times.append(time.perf_counter() - begin)
        return min(times[1:])

    with ThreadPoolExecutor(threads) as pool:
        return max(pool.map(run, range(threads)))
