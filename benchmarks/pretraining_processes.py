"""Pretraining with 1 and 2 processes on this machine, and what more of them would send: tokens/s and bytes.

Each process has one thread and its share of the same global batch, so that both train the same. They take turns in one
run, on generated text. Then, computed and not measured: the bytes of an update of 8 processes of 256 streams each.
Words are drawn by a Zipf-Mandelbrot law.

    python -m benchmarks.pretraining_processes
"""

import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.config import OptimizerSettings, PathSettings, PretrainConfig, SoftmaxSettings
from spacy_elmo.pretraining.config import TrainingSettings as Training
from spacy_elmo.pretraining.distributed import processes
from spacy_elmo.pretraining.folder import find_vocabulary, starting_model
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.softmax import LogUniform
from spacy_elmo.pretraining.trainer import Trainer

from .common import measured, options_of, parser_of, row, write_text

PAUSE = 1.0  # seconds between measurements
DIM, STREAMS, STEPS, NEGATIVES = 1024, 256, 20, 4096
FLOAT = 4  # bytes
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

    def rate(self, updates: int) -> float:
        """Return tokens a second of so many updates."""
        for orders in self.orders:
            orders.send(updates)
        return updates * STREAMS * STEPS / max(float(orders.recv()) for orders in self.orders)

    def end(self) -> None:
        for orders, process in zip(self.orders, self.processes):
            orders.send(0)
            process.join()


def measure(config: PretrainConfig, folder: Path, rounds: int, updates: int) -> None:
    sides = [Side(size, config, folder) for size in (1, 2)]
    pids = [process.pid or 0 for side in sides for process in side.processes]
    for side in sides:
        side.rate(2)
    print("| round | 1 process, tokens/s | 2 processes, tokens/s | ratio | others' cores |\n|---|---|---|---|---|")
    ratios: list[float] = []
    for number in range(1, rounds + 1):
        found = [measured(partial(side.rate, updates), PAUSE, *pids) for side in sides]
        ratios.append(found[1].rate / found[0].rate)
        rates = [f"{one.rate:,.0f}" for one in found]
        print(row([number, *rates, f"{ratios[-1]:.2f}", f"{max(one.others for one in found):.2f}"]), flush=True)
    for side in sides:
        side.end()
    print(f"median ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


def print_traffic(options: BiLMOptions, name: str, n_words: int) -> None:
    """Print what an update of 8 processes sends: the gradients of the biLM, and of the softmax the rows that it scores.

    Both directions have nearly the same targets.
    """
    with torch.device("meta"):
        dense = sum(parameter.numel() for parameter in BiLM(options).parameters())
    _, tries = LogUniform(n_words, NEGATIVES).draw(torch.Generator().manual_seed(0))
    drawn = LogUniform(n_words, NEGATIVES).log_expected(torch.arange(n_words), tries).exp().numpy()
    p = (np.arange(1, n_words + 1) + SHIFT) ** -EXPONENT
    is_target = 1 - (1 - p / p.sum()) ** (8 * STREAMS * STEPS)  # of each word, at least once
    rows = NEGATIVES + (is_target * (1 - drawn)).sum()
    parts = (FLOAT * dense, FLOAT * (options.projection_dim + 1) * rows)
    print(row([name, f"{n_words:,}", *(f"{part / 1e6:,.3f} MB" for part in parts)]))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--updates", type=int, default=6, help="updates in a measurement")
    args = parser.parse_args()
    options = replace(options_of("en_mini"), dim=DIM)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        write_text(text, 400_000)
        optimizer = OptimizerSettings(name="adamw", learning_rate=0.004)  # as docs/pretraining.md was measured
        softmax = SoftmaxSettings("sampled", NEGATIVES)
        settings = Training(streams=STREAMS, steps=STEPS, workers=1, softmax=softmax, optimizer=optimizer)
        config = PretrainConfig(PathSettings(str(text)), options, training=settings)
        print(f"LSTM {DIM}, projection {options.projection_dim}, {STREAMS} x {STEPS} tokens an update")
        measure(config, Path(folder), args.rounds, args.updates)
    print("\n| size | words | biLM | softmax rows |\n|---|---|---|---|")
    for name, chosen in ((f"LSTM {DIM}", options), ("original", options_of("original"))):
        for n_words in (50_000, 793_471):
            print_traffic(chosen, name, n_words)


if __name__ == "__main__":
    main()
