"""GFLOP a second of the compiled LSTM loops alone, both directions side by side; with large pages and without.

python -m benchmarks.speed.compiled_lstm
python -m benchmarks.speed.compiled_lstm --size mini --rows 12,128
"""

import statistics
import time
from functools import partial
from unittest import mock

import numpy as np
import torch

from spacy_elmo import kernels
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.inference import lstm as compiled_stack
from spacy_elmo.inference.lstm import KINDS, CompiledStack, Kind
from spacy_elmo.inference.packing import Buffers, Packing, Plans, plan_positions, plan_words
from spacy_elmo.inference.workers import run_all
from spacy_elmo.modules import BiLM, LstmState
from spacy_elmo.modules.lstm_cell import LayerWeights

from ..common.arguments import add_common, count, counts, parser_of
from ..common.model_sizes import options_of

STEPS = 8
CPU = torch.device("cpu")


class Direction:
    """Some steps of one direction from the zero state, of rows of one length; all words are one."""

    def __init__(self, options: BiLMOptions, kind: Kind, bilm: BiLM, d: int, rows: int) -> None:
        library = kernels.load()
        assert library is not None
        self.options, self.stack = options, CompiledStack(options, kind, library, Buffers())
        for layer in bilm.lstm.weights():
            of_direction = LayerWeights(
                layer.input_weight.detach()[d],
                layer.recurrent_weight.detach()[d],
                layer.bias.detach()[d],
                None if layer.projection is None else layer.projection.detach()[d],
            )
            self.stack.add(of_direction, False)
        self.packing = Packing.of(np.full(rows, STEPS))
        most = rows * STEPS
        words = np.zeros(most, np.int64)
        self.plans = Plans(plan_words(self.packing, words, 1, most, CPU), plan_positions(self.packing, most, CPU))
        self.words, self.rows, self.backward = torch.zeros(1, options.projection_dim), rows, d == 1

    @torch.no_grad()
    def run(self) -> None:
        """Once."""
        h = torch.zeros(self.options.n_layers, self.rows, self.options.projection_dim)
        c = torch.zeros(self.options.n_layers, self.rows, self.options.dim)
        self.stack.run(self.words, self.plans, self.packing, LstmState(h, c), None, self.backward)

    @property
    def flop(self) -> int:
        """Of a run: the inputs of the layers after the first, the states and the projections."""
        n, dim, width = self.options.n_layers, self.options.dim, self.options.projection_dim
        return 2 * self.rows * STEPS * dim * width * (4 * (n - 1) + 4 * n + n)


def seconds(both: list[Direction]) -> float:
    """Of both directions, a thread each."""
    begin = time.perf_counter()
    run_all([direction.run for direction in both], len(both))
    return time.perf_counter() - begin


def main() -> None:
    parser = parser_of(__doc__)
    add_common(parser, "size")
    parser.add_argument("--rows", type=counts, default=[1, 12, 32, 128], metavar="N,N", help="rows of a step")
    parser.add_argument("--rounds", type=count, default=15, help="measurements of each row")
    args = parser.parse_args()
    options = options_of(args.size)
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    small = partial(mock.patch.object, compiled_stack, "in_large_pages", lambda tensor: tensor)
    print(f"{args.size} size, {STEPS} steps, {args.rounds} rounds; GFLOP/s, medians\n")
    print("| loops | rows | large pages | small pages | ratio in a round |\n| --- | --: | --: | --: | --: |")
    for kind in (kind for kind in KINDS if kind.has(kernels.load())):
        for rows in args.rows:
            large_pages = [Direction(options, kind, bilm, d, rows) for d in (0, 1)]
            with small():
                small_pages = [Direction(options, kind, bilm, d, rows) for d in (0, 1)]
            found = [(seconds(large_pages), seconds(small_pages)) for _ in range(args.rounds + 1)][1:]
            flop = sum(direction.flop for direction in large_pages) / 1e9
            large, less = (flop / statistics.median(times) for times in zip(*found))
            ratio = statistics.median(below / above for above, below in found)
            print(f"| {kind.name} | {rows} | {large:.0f} | {less:.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
