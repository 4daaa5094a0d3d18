"""What each part of the engine brings: its rate with one part switched off, as a share of the whole engine's, in turns.

python -m benchmarks.speed.without_parts
python -m benchmarks.speed.without_parts --size mini --batch 128 --precisions bfloat16
"""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest import mock

import torch

from spacy_elmo.formats.options import BiLMOptions
from spacy_elmo.inference import Engine
from spacy_elmo.inference import engine as layout
from spacy_elmo.inference.words import WordEncoder
from spacy_elmo.modules import BiLM

from ..common.arguments import add_common, count, parser_of
from ..common.english_like import generated
from ..common.machine_load import LoadMeter
from ..common.model_sizes import options_of
from ..common.our_sides import make_engine
from .rounds import rate_of
from .table import Measured, compared, load_of, rate

PAUSE, LEAST = 0.5, 1.0  # seconds before a measurement, and of one
Words = list[list[str]]
INFERENCE = "spacy_elmo.inference"


def run(engine: Engine, batch: Words) -> None:
    engine.run(batch)


def run_with_boundaries(engine: Engine, batch: Words) -> None:
    """Every row's first and last position are run."""
    engine.run_from(batch, engine.zero_state(len(batch)))


def float32_encoder(options: BiLMOptions, dtype: torch.dtype, lossless: bool) -> WordEncoder:
    return WordEncoder(options, torch.float32, lossless)


def one_thread(parts: Any, n_threads: int) -> None:
    """A direction after the other, each matrix multiplication on all threads."""
    for part in parts:
        part()


def torch_stacks() -> Any:
    return mock.patch(f"{INFERENCE}.lstm.stacks.kind_of", return_value=None)


# what is switched off: patches, and how a batch is run
OFF: dict[str, tuple[list[Callable[[], Any]], Callable[[Engine, Words], None]]] = {
    "nothing": ([], run),
    "the compiled LSTM (torch's matrix multiplications, compiled cell)": ([torch_stacks], run),
    "that, and a thread for each direction": (
        [torch_stacks, lambda: mock.patch(f"{INFERENCE}.engine.run_all", one_thread)],
        run,
    ),
    "weights in large pages": (
        [lambda: mock.patch(f"{INFERENCE}.lstm.compiled.in_large_pages", lambda tensor: tensor)],
        run,
    ),
    "inputs of the first layer once a word": ([lambda: mock.patch(f"{INFERENCE}.engine.WORD_BYTES", 0)], run),
    "positions of boundaries left out": ([], run_with_boundaries),
    "the character encoder in bfloat16": (
        [lambda: mock.patch.object(layout, "WordEncoder", float32_encoder)],
        run,
    ),
}


def seconds_of(engine: Engine, sentences: Words, batch: int, how: Callable[[Engine, Words], None]) -> float:
    begin = time.perf_counter()
    for k in range(0, len(sentences), batch):
        how(engine, sentences[k : k + batch])
    return time.perf_counter() - begin


def main() -> None:
    parser = parser_of(__doc__)
    add_common(parser, "size")
    parser.add_argument("--batch", type=count, default=128, help="sentences of a batch")
    add_common(parser, "precisions", "threads")
    parser.add_argument("--rounds", type=count, default=3, help="measurements of each row")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    bilm = BiLM(options_of(args.size))
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    sentences = generated(2 * args.batch, 0)
    tokens = sum(map(len, sentences))
    print(f"{args.size} size, batch {args.batch}, {args.threads} threads, {args.rounds} rounds\n")
    print("| precision | switched off | tokens/s | share | others' cores |\n| --- | --- | --: | --: | --- |")
    for precision in args.precisions:
        series: dict[str, list[Measured]] = {name: [] for name in OFF if precision in name or "bfloat16" not in name}
        for turn in range(args.rounds + 1):  # the first warms up
            for name, measured in series.items():
                patches, how = OFF[name]
                with ExitStack() as stack:
                    for patch in patches:
                        stack.enter_context(patch())
                    engine = make_engine(bilm, precision)
                    one_pass = partial(seconds_of, engine, sentences, args.batch, how)
                    one_pass()
                    time.sleep(PAUSE)
                    meter = LoadMeter([os.getpid()])
                    found = rate_of(one_pass, tokens, LEAST)
                    if turn:
                        measured.append(Measured(found, meter.stop()))
                del engine, one_pass
        for name, measured in series.items():
            share = compared(measured, series["nothing"], ".0%")
            print(f"| {precision} | {name} | {rate(measured):,.0f} | {share} | {load_of(measured)} |", flush=True)


if __name__ == "__main__":
    main()
