"""The engine's rate with one busy process beside it, as a share of its rate without, in turns.

    python -m benchmarks.busy_neighbour
    python -m benchmarks.busy_neighbour --size mini --batches 128

The neighbour is a Python loop: it keeps one core busy. Other processes' load is printed with every figure, without it.
"""

import subprocess
import sys
from functools import partial

import torch

from .common import (
    Rounds,
    compared,
    engine_seconds,
    generated,
    load_of,
    make_engine,
    measured,
    median_rate,
    numbers_of,
    options_of,
    parser_of,
    random_bilm,
    rate_of,
    row,
)

PAUSE = 1.0


def main() -> None:
    parser = parser_of(__doc__, "size", "precisions", "threads")
    parser.add_argument("--batches", type=numbers_of, default="1,32,128", help="sentences of a batch, with commas")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each row")
    parser.add_argument("--least", type=float, default=3.0, help="seconds of a measurement, at least")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    bilm = random_bilm(options_of(args.size))
    print(f"{args.size} size, {args.threads} threads, {args.rounds} rounds\n")
    print("| batch | precision | quiet, tokens/s | with a neighbour | share | others' cores: quiet | with it |")
    print("| --: | --- | --: | --: | --: | --- | --- |")
    for batch in args.batches:
        sentences = generated(max(8, batch), 0)
        for precision in args.precisions:
            one_pass = partial(engine_seconds(make_engine(bilm, precision), sentences), len(sentences), batch)
            one_pass()
            run = partial(rate_of, one_pass, sum(map(len, sentences)), args.least)
            quiet: Rounds = []
            busy: Rounds = []
            for _ in range(args.rounds):
                quiet.append(measured(run, PAUSE))
                neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                try:
                    busy.append(measured(run, PAUSE, neighbour.pid))
                finally:
                    neighbour.kill()
                    neighbour.wait()
            rates = [f"{median_rate(series):,.0f}" for series in (quiet, busy)]
            cells = [batch, precision, *rates, compared(busy, quiet, ".0%"), load_of(quiet), load_of(busy)]
            print(row(cells), flush=True)


if __name__ == "__main__":
    main()
