"""Limits of a biLM's speed: operations of its matrix multiplications, and this machine's rates of such alone."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from spacy_elmo.formats import BiLMOptions

LARGE = 4096  # rows and columns of a large matrix
TOKENS = 16  # of a measurement: enough that handing over to a thread takes no time beside them
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def lstm_flop(options: BiLMOptions) -> int:
    """Count multiplications and additions of a token: sums of the gates and projections, both directions."""
    cell = 2 * options.projection_dim * 4 * options.dim
    if options.has_lstm_projection:
        cell += options.dim * options.projection_dim
    return 2 * 2 * options.n_layers * cell


def encoder_flop(options: BiLMOptions) -> int:
    """Count those of a distinct word: convolutions at all of max_characters positions, highways, projection."""
    convolutions = sum(
        (options.max_characters - width + 1) * width * options.char_dim * n for width, n in options.filters
    )
    dense = 2 * options.n_highway * options.n_filters**2
    if options.has_char_projection:
        dense += options.n_filters * options.projection_dim
    return 2 * (convolutions + dense)


def tokens_at_rate(options: BiLMOptions, tokens: int, distinct: int, rate: float) -> float:
    """Return tokens a second if a batch's matrix multiplications, and nothing else, ran at a rate.

    distinct: distinct words among the tokens. rate: FLOP a second.
    """
    return tokens * rate / (tokens * lstm_flop(options) + distinct * encoder_flop(options))


def large_matrix_rate(precision: str, seconds: float) -> float:
    """Measure FLOP a second of large matrix multiplications on all of torch's threads, for so many seconds."""
    a, b = (torch.randn(LARGE, LARGE).to(DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * LARGE**3 / _median_seconds(lambda: torch.mm(a, b, out=out), seconds)


class MatrixVectorRates:
    """Rate of one row times the recurrent and projection weights of all layers and directions, layer after layer.

    That is the least that a token costs at batch 1. If these weights are larger than the cache, they are read from
    memory again for each token. Both directions on all threads, and each direction on a thread of its own,
    by torch.mv and by F.linear: the fastest counts.
    """

    def __init__(self, options: BiLMOptions, precision: str) -> None:
        shapes = [(4 * options.dim, options.projection_dim)]
        if options.has_lstm_projection:
            shapes.append((options.projection_dim, options.dim))
        dtype = DTYPES[precision]
        self.directions = [
            [torch.randn(shape).to(dtype) for _ in range(options.n_layers) for shape in shapes] for _ in (0, 1)
        ]
        self.rows = {weight.shape[1]: torch.randn(weight.shape[1]).to(dtype) for weight in self.directions[0]}

    def tokens_a_second(self, seconds: float) -> float:
        """Measure the fastest way for so many seconds, all ways together; return the median."""
        n_threads = torch.get_num_threads()
        multiplications: tuple[Callable[[Tensor], Tensor], ...] = (self._vector, self._row)
        ways: list[Callable[[], object]] = [partial(self._in_turn, multiply) for multiply in multiplications]
        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            if n_threads > 1:
                ways += [partial(self._side_by_side, multiply, pool) for multiply in multiplications]
            found = [_median_seconds(way, seconds / len(ways)) for way in ways]
        torch.set_num_threads(n_threads)
        return TOKENS / min(found)

    def _vector(self, weight: Tensor) -> Tensor:
        return torch.mv(weight, self.rows[weight.shape[1]])

    def _row(self, weight: Tensor) -> Tensor:
        return F.linear(self.rows[weight.shape[1]][None], weight)

    def _in_turn(self, multiply: Callable[[Tensor], Tensor]) -> None:
        for weights in self.directions * TOKENS:
            _through(multiply, weights)

    def _side_by_side(self, multiply: Callable[[Tensor], Tensor], pool: ThreadPoolExecutor) -> None:
        list(pool.map(partial(_through, multiply), [weights * TOKENS for weights in self.directions]))


def _through(multiply: Callable[[Tensor], Tensor], weights: list[Tensor]) -> None:
    for weight in weights:
        multiply(weight)


def _median_seconds(run: Callable[[], object], seconds: float) -> float:
    run()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)
