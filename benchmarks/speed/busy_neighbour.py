"""The engine's rate with one busy process beside it, as a share of its rate without, in turns.

    python -m benchmarks.speed.busy_neighbour
    python -m benchmarks.speed.busy_neighbour --size mini --batches 128

The neighbour is a Python loop: it keeps one core busy. Other processes' load is printed with every figure, without it.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from spacy_elmo.modules import BiLM

from ..common.arguments import add_common, count, counts, parser_of
from ..common.english_like import generated
from ..common.machine_load import LoadMeter
from ..common.model_sizes import options_of
from ..common.our_sides import Seconds, engine_seconds, make_engine
from .rounds import rate_of
from .table import Measured, compared, load_of, rate

PAUSE = 1.0


@contextmanager
def neighbour() -> Iterator[list[int]]:
    """The ids of the processes that run beside this one: a busy one."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield [process.pid]
    finally:
        process.kill()
        process.wait()


def measured(seconds: Seconds, sentences: list[list[str]], batch: int, least: float, beside: list[int]) -> Measured:
    """A rate and other processes' load meanwhile."""
    time.sleep(PAUSE)
    meter = LoadMeter([os.getpid(), *beside])
    found = rate_of(lambda: seconds(len(sentences), batch), sum(map(len, sentences)), least)
    return Measured(found, meter.stop())


def main() -> None:
    parser = parser_of(__doc__)
    add_common(parser, "size")
    parser.add_argument("--batches", type=counts, default=[1, 32, 128], metavar="N,N", help="sentences of a batch")
    add_common(parser, "precisions", "threads")
    parser.add_argument("--rounds", type=count, default=3, help="measurements of each row")
    parser.add_argument("--least", type=float, default=3.0, help="seconds of a measurement, at least")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    bilm = BiLM(options_of(args.size))
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    print(f"{args.size} size, {args.threads} threads, {args.rounds} rounds\n")
    print("| batch | precision | quiet, tokens/s | with a neighbour | share | others' cores: quiet | with it |")
    print("| --: | --- | --: | --: | --: | --- | --- |")
    for batch in args.batches:
        sentences = generated(max(8, batch), 0)
        for precision in args.precisions:
            seconds = engine_seconds(make_engine(bilm, precision), sentences)
            seconds(len(sentences), batch)
            quiet: list[Measured] = []
            busy: list[Measured] = []
            for _ in range(args.rounds):
                quiet.append(measured(seconds, sentences, batch, args.least, []))
                with neighbour() as beside:
                    busy.append(measured(seconds, sentences, batch, args.least, beside))
            share = compared(busy, quiet, ".0%")
            rates, loads = ([show(quiet), show(busy)] for show in (lambda series: f"{rate(series):,.0f}", load_of))
            print(f"| {' | '.join([str(batch), precision, *rates, share, *loads])} |", flush=True)


if __name__ == "__main__":
    main()
