"""What each part of the engine brings: its rate with one part switched off, as a share of the whole engine's, in turns.

    python -m benchmarks.without_parts
    python -m benchmarks.without_parts --neighbour --batch 32 --rounds 2

--neighbour: its rate with one busy process beside it, a Python loop that keeps one core busy, instead. Other processes'
load is printed without it.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from spacy_elmo.formats.options import BiLMOptions
from spacy_elmo.inference import Engine, engine, lstm
from spacy_elmo.inference.words import WordEncoder

from . import common

PAUSE, LEAST = 0.5, 1.0  # seconds before a measurement, and of one


def float32_encoder(options: BiLMOptions, weights: Mapping[str, Tensor], dtype: torch.dtype) -> WordEncoder:
    """The encoder of words, whatever the precision."""
    return WordEncoder(options, weights, torch.float32)


def one_thread(parts: Any, n_threads: int) -> None:
    """A direction after the other, each matrix multiplication on all threads."""
    for part in parts:
        part()


def off(module: Any, name: str, instead: Any) -> Callable[[], Any]:
    """Return what makes a patch of a module."""
    return lambda: mock.patch.object(module, name, instead)


BOUNDARIES = "positions of boundaries left out"  # with them, every row's first and last position are run
TORCH = off(lstm, "KINDS", ())
OFF: dict[str, list[Callable[[], Any]]] = {
    "nothing": [],
    "the compiled LSTM (torch's matrix multiplications, compiled cell)": [TORCH],
    "that, and a thread for each direction": [TORCH, off(engine, "run_all", one_thread)],
    "weights in large pages": [off(lstm, "in_large_pages", lambda tensor: tensor)],
    "inputs of the first layer once a word": [off(engine, "WORD_BYTES", 0)],
    BOUNDARIES: [],
    "the character encoder in bfloat16": [off(engine, "WordEncoder", float32_encoder)],
}


@contextmanager
def neighbour() -> Iterator[int]:
    """Keep a core busy meanwhile. Yields the process."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


NEIGHBOUR: dict[str, list[Callable[[], Any]]] = {"nothing": [], "nothing, with a busy neighbour": [neighbour]}


def seconds_of(whole: Engine, sentences: common.Sentences, batch: int, boundaries: bool) -> float:
    begin = time.perf_counter()
    for k in range(0, len(sentences), batch):
        part = sentences[k : k + batch]
        if boundaries:
            whole.run_from(part, whole.zero_state(len(part)))
        else:
            whole.run(part)
    return time.perf_counter() - begin


def main() -> None:
    parser = common.parser_of(__doc__, "size", "precisions", "threads")
    parser.add_argument("--batch", type=int, default=128, help="sentences of a batch")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each row")
    parser.add_argument("--neighbour", action="store_true", help="measure with a busy process beside it")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    bilm = common.random_bilm(common.options_of(args.size))
    sentences = common.generated(2 * args.batch, 0)
    tokens = sum(map(len, sentences))
    print(f"{args.size} size, batch {args.batch}, {args.threads} threads, {args.rounds} rounds\n")
    print("| precision | switched off | tokens/s | share | others' cores |\n| --- | --- | --: | --: | --- |")
    for precision in args.precisions:
        ways = NEIGHBOUR if args.neighbour else OFF
        series: dict[str, common.Rounds] = {name: [] for name in ways if precision in name or "bfloat16" not in name}
        for turn in range(args.rounds + 1):  # the first warms up
            for name, rounds in series.items():
                with ExitStack() as stack:
                    entered = [stack.enter_context(way()) for way in ways[name]]
                    pids = [one for one in entered if isinstance(one, int)]
                    one_pass = partial(
                        seconds_of, common.make_engine(bilm, precision), sentences, args.batch, name == BOUNDARIES
                    )
                    one_pass()
                    found = common.measured(partial(common.rate_of, one_pass, tokens, LEAST), PAUSE, *pids)
                    if turn:
                        rounds.append(found)
                del one_pass
        for name, rounds in series.items():
            cells = [f"{common.median_rate(rounds):,.0f}", common.compared(rounds, series["nothing"], ".0%")]
            print(common.row([precision, name, *cells, common.load_of(rounds)]), flush=True)


if __name__ == "__main__":
    main()
