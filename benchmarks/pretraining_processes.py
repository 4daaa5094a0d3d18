"""Pretraining with 1 and 2 processes on this machine, and what more of them would send: tokens/s and bytes.

Each process has one thread (--threads) and its share of the same global batch, so that both train the same. They take
turns in one run, on generated text. Then, computed and not measured: the bytes of an update. Words are drawn by a
Zipf-Mandelbrot law.

    python -m benchmarks.pretraining_processes
    python -m benchmarks.pretraining_processes --grow                     # --streams for each process
"""

import argparse
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.softmax import LogUniform
from spacy_elmo.pretraining.config import (
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)
from spacy_elmo.pretraining.distributed import processes
from spacy_elmo.pretraining.folder import find_vocabulary, starting_model
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.trainer import Trainer

from .common import LoadMeter, generated, options_of, parser_of, row

PAUSE = 1.0  # seconds between measurements
GIVEN_WORDS = (50_000, 793_471)
FLOAT, ID = 4, 8  # bytes
# Zipf-Mandelbrot: p of the word of rank r in proportion to 1 / (r + 2.7) ** 1.1. With V = 50,000, 20 tokens of each of
# 256 / 384 / 2,048 places in Wikipedia text have 2,054 / 2,816 / 9,059 distinct words; this law 2,093 / 2,858 / 9,587
SHIFT, EXPONENT = 2.7, 1.1


def work(rank: int, size: int, port: int, config: PretrainConfig, folder: Path, orders: Connection) -> None:
    """One process: makes as many updates as it is told, and tells the seconds."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ.update({name: str(number) for name, number in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"})
    torch.set_num_threads(1)
    corpus = prepare(config.paths.train, folder / f"{size}-{rank}")
    with processes("cpu") as group:
        vocabulary = find_vocabulary(config, corpus)
        model = starting_model(config, vocabulary)
        trainer = Trainer(config.training, model, corpus, config.corpus.shuffle_block, group)
        with trainer:
            while updates := orders.recv():
                group.from_first(0.0)
                begin = time.perf_counter()
                for _ in range(updates):
                    trainer.step()
                orders.send(time.perf_counter() - begin)


class Side:
    """The processes of one run, which wait for orders."""

    def __init__(self, size: int, config: PretrainConfig, folder: Path) -> None:
        self.tokens = config.training.streams * config.training.steps
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(size)]
        self.orders = [ours for ours, _ in pipes]
        self.processes = [
            context.Process(target=work, args=(rank, size, port, config, folder, theirs), daemon=True)
            for rank, (_, theirs) in enumerate(pipes)
        ]
        for process in self.processes:
            process.start()

    def seconds(self, updates: int) -> float:
        """For so many updates; 0 ends the processes."""
        for orders in self.orders:
            orders.send(updates)
        return max(float(orders.recv()) for orders in self.orders) if updates else 0.0


def measure(config: PretrainConfig, folder: Path, args: argparse.Namespace) -> None:
    """Print a row a round and the median ratio."""
    both = [config, config]
    if args.grow:
        both[1] = replace(config, training=replace(config.training, streams=2 * config.training.streams))
    sides = [Side(size, chosen, folder) for size, chosen in zip((1, 2), both)]
    for side in sides:
        side.seconds(2)
    print(
        "| round | 1 process, tokens/s | 2 processes, tokens/s | ratio | load before, others |\n|---|---|---|---|---|"
    )
    ratios: list[float] = []
    for number in range(1, args.rounds + 1):
        meter = LoadMeter(*(process.pid or 0 for side in sides for process in side.processes))
        speeds = []
        for side in sides:
            time.sleep(PAUSE)
            speeds.append(args.updates * side.tokens / side.seconds(args.updates))
        ratios.append(speeds[1] / speeds[0])
        rates = [f"{speed:,.0f}" for speed in speeds]
        print(row([number, *rates, f"{ratios[-1]:.2f}", meter.stop()]), flush=True)
    for side in sides:
        side.seconds(0)
        for process in side.processes:
            process.join()
    print(f"median ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


class Traffic(NamedTuple):
    """Bytes of an update.

    dense: gradients of the biLM. rows: of the softmax's scored rows. ids: of one process's distinct targets.
    full: of all rows of the softmax, in the place of rows and ids.
    """

    dense: int
    rows: int
    ids: int
    full: int


def traffic(options: BiLMOptions, n_words: int, negatives: int, positions: int, processes: int) -> Traffic:
    """positions: targets of one direction in an update, of all processes; both directions have nearly the same."""
    with torch.device("meta"):
        dense = sum(parameter.numel() for parameter in BiLM(options).parameters())
    _, tries = LogUniform(n_words, negatives).draw(torch.Generator().manual_seed(0))
    drawn = LogUniform(n_words, negatives).log_expected(torch.arange(n_words), tries).exp().numpy()
    extra = (occurs(n_words, positions) * (1 - drawn)).sum()
    row = options.projection_dim + 1
    return Traffic(
        FLOAT * dense,
        round(FLOAT * row * (negatives + extra)),
        round(ID * occurs(n_words, positions // processes).sum()),
        FLOAT * row * n_words,
    )


def occurs(n_words: int, positions: int) -> np.ndarray:
    """*Shape:* (n_words,): the probability of each word to be a target at least once."""
    p = (np.arange(1, n_words + 1) + SHIFT) ** -EXPONENT
    result: np.ndarray = 1 - (1 - p / p.sum()) ** positions
    return result


def print_traffic(options: BiLMOptions, args: argparse.Namespace) -> None:
    """Print the tables of what is computed."""
    n, streams = args.processes, args.streams
    print(f"\n{n} processes, {streams:,} streams of {args.steps} steps each; {args.negatives:,} negatives")
    print("| size | words | biLM | softmax rows | target numbers of a process | all softmax rows instead |")
    print("|---|---|---|---|---|---|")
    for name, chosen in (("this one", options), ("original", options_of("original"))):
        for n_words in GIVEN_WORDS:
            got = traffic(chosen, n_words, args.negatives, n * streams * args.steps, n)
            print(row([name, f"{n_words:,}", *(f"{part / 1e6:,.3f} MB" for part in got)]))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--dim", type=int, default=1024, help="of the LSTMs")
    parser.add_argument("--projection", type=int, default=128, help="of the LSTMs")
    parser.add_argument("--words", type=int, default=50_000, help="of the softmax")
    parser.add_argument("--negatives", type=int, default=4096, help="of the sampled softmax")
    parser.add_argument("--streams", type=int, default=256, help="rows of a batch, of all processes together")
    parser.add_argument("--steps", type=int, default=20, help="positions of a batch")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--processes", type=int, default=8, help="of the computed part")
    parser.add_argument("--sentences", type=int, default=20_000, help="of the generated text")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--updates", type=int, default=6, help="updates in a measurement")
    parser.add_argument("--grow", action="store_true", help="--streams for each process, instead of for all")
    args = parser.parse_args()
    options = replace(options_of("mini"), dim=args.dim, projection_dim=args.projection)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("\n".join(" ".join(words) for words in generated(args.sentences, 0)) + "\n", encoding="utf8")
        settings = TrainingSettings(
            streams=args.streams,
            steps=args.steps,
            workers=args.threads,
            softmax=SoftmaxSettings("sampled", args.negatives),
            optimizer=OptimizerSettings(name="adamw", learning_rate=0.004),  # as docs/pretraining.md was measured
        )
        config = PretrainConfig(
            PathSettings(str(text)), options, vocabulary=VocabularySettings(args.words), training=settings
        )
        print(f"LSTM {args.dim}, projection {args.projection}, {args.streams} x {args.steps} tokens an update")
        measure(config, Path(folder), args)
    print_traffic(options, args)


if __name__ == "__main__":
    main()
