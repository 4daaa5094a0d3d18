"""Pretraining with 1 and 2 processes on this machine, and what more of them would send: tokens/s and bytes.

Each process has one thread (--threads) and its share of the same global batch, so that both train the same. They take
turns in one run, on generated text. Then, computed and not measured: the bytes of an update, and how long they take
for 8 GPUs in one machine and for 8 machines over links of given speeds. Nothing is sent while the step computes, so
the share of the step is step / (step + sending). Words are drawn by a Zipf-Mandelbrot law (see traffic.py).

    python -m benchmarks.pretraining.processes
    python -m benchmarks.pretraining.processes --grow                     # --streams for each process
    python -m benchmarks.pretraining.processes --step-seconds 0.05        # of one GPU, for the computed part
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

import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.pretraining.config import (
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    TrainingSettings,
    VocabularySettings,
)
from spacy_elmo.pretraining.distributed import processes
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.pretraining.starting import find_vocabulary, starting_model
from spacy_elmo.pretraining.trainer import Trainer

from ..common.arguments import count, parser_of
from ..common.english_like import generated
from ..common.machine_load import LoadMeter
from ..common.model_sizes import options_of
from .traffic import Traffic, seconds, traffic

PAUSE = 1.0  # seconds between measurements
GIVEN_WORDS = (50_000, 793_471)


def work(rank: int, size: int, port: int, config: PretrainConfig, folder: Path, orders: Connection) -> None:
    """One process: makes as many updates as it is told, and tells the seconds."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ.update({name: str(number) for name, number in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"})
    torch.set_num_threads(1)
    corpus = prepare(config.paths.train, folder / f"{size}-{rank}")
    with processes("cpu") as group:
        vocabulary = find_vocabulary(config.paths, config.vocabulary, corpus)
        model = starting_model(config.bilm, config.paths, config.training, vocabulary)
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


def measure(config: PretrainConfig, folder: Path, args: argparse.Namespace) -> float:
    """Print a row a round and the median ratio. Returns the median seconds of one process's update."""
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
    alone: list[float] = []
    for number in range(1, args.rounds + 1):
        meter = LoadMeter([os.getpid(), *(process.pid or 0 for side in sides for process in side.processes)])
        speeds = []
        for side in sides:
            time.sleep(PAUSE)
            took = side.seconds(args.updates)
            speeds.append(args.updates * side.tokens / took)
            if side is sides[0]:
                alone.append(took / args.updates)
        ratios.append(speeds[1] / speeds[0])
        row = f"| {number} | {speeds[0]:,.0f} | {speeds[1]:,.0f} | {ratios[-1]:.2f} | {meter.stop()} |"
        print(row, flush=True)
    for side in sides:
        side.seconds(0)
        for process in side.processes:
            process.join()
    print(f"median ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    return statistics.median(alone)


def print_traffic(options: BiLMOptions, args: argparse.Namespace, step: float) -> None:
    """Print the tables of what is computed."""
    n, streams = args.processes, args.streams
    print(f"\n{n} processes, {streams:,} streams of {args.steps} steps each; {args.negatives:,} negatives")
    print("| size | words | biLM | softmax rows | target numbers of a process | all softmax rows instead |")
    print("|---|---|---|---|---|---|")
    found: dict[str, Traffic] = {}
    for name, chosen in (("this one", options), ("original", options_of("original"))):
        for n_words in GIVEN_WORDS:
            got = traffic(chosen, n_words, args.negatives, n * streams * args.steps, n)
            found[f"{name}, {n_words:,} words"] = got
            megabytes = " | ".join(f"{part / 1e6:,.3f} MB" for part in got)
            print(f"| {name} | {n_words:,} | {megabytes} |")
    print(f"\nseconds of sending an update, and the share of the step at {step:.3f} s of computing")
    if args.original_step_seconds:
        print(f"({args.original_step_seconds:.3f} s at the original size)")
    links = [("8 GPUs in one machine", gigabits) for gigabits in args.inside]
    links += [("8 machines", gigabits) for gigabits in args.between]
    print("| size | " + " | ".join(f"{where}, {gigabits:g} Gbit/s" for where, gigabits in links) + " |")
    print("|---" * (1 + len(links)) + "|")
    for name, got in found.items():
        taken = [seconds(got, n, gigabits) for _, gigabits in links]
        own = args.original_step_seconds if name.startswith("original") else step
        cells = [f"{t:.4f} s" + (f", {100 * own / (own + t):.0f} %" if own else "") for t in taken]
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--dim", type=count, default=1024, help="of the LSTMs")
    parser.add_argument("--projection", type=count, default=128, help="of the LSTMs")
    parser.add_argument("--words", type=count, default=50_000, help="of the softmax")
    parser.add_argument("--negatives", type=count, default=4096, help="of the sampled softmax")
    parser.add_argument("--streams", type=count, default=256, help="rows of a batch, of all processes together")
    parser.add_argument("--steps", type=count, default=20, help="positions of a batch")
    parser.add_argument("--threads", type=count, default=1, help="of each process")
    parser.add_argument("--processes", type=count, default=8, help="of the computed part")
    parser.add_argument("--sentences", type=count, default=20_000, help="of the generated text")
    parser.add_argument("--rounds", type=count, default=5, help="measurements of each side")
    parser.add_argument("--updates", type=count, default=6, help="updates in a measurement")
    parser.add_argument("--grow", action="store_true", help="--streams for each process, instead of for all")
    parser.add_argument("--inside", type=float, nargs="*", default=[500.0, 3600.0], help="Gbit/s between GPUs")
    parser.add_argument("--between", type=float, nargs="*", default=[25.0, 100.0], help="Gbit/s between machines")
    parser.add_argument("--step-seconds", type=float, help="of one update (default: measured with 1 process)")
    parser.add_argument("--original-step-seconds", type=float, help="at the original size (default: not known)")
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
        step = measure(config, Path(folder), args)
    print_traffic(options, args, args.step_seconds or step)


if __name__ == "__main__":
    main()
