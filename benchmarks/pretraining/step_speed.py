"""Tokens per second of pretraining's step beside the same step written with torch's own modules, in one run.

Ours: training/step.py and the updates. Plain: plain_step.py, in float32 and under autocast to bfloat16. Both train
the same network (but ours clips) from the same weights on the same batches, new ones each round: words drawn by a Zipf
distribution, with random spellings. They take turns, after a warm-up; the reading of a corpus is not measured. Then:
the operations of the step's matrix multiplications, how long this machine needs for them alone, and a profile of our
step.

    python -m benchmarks.pretraining.step_speed
    python -m benchmarks.pretraining.step_speed --quick --json out.json

Other processes' load is printed with every figure: where they took more than a tenth of a core the round is marked.
"""

import argparse
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import words_to_ids
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.softmax import Softmax
from spacy_elmo.pretraining.config import OptimizerSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.objectives import RowObjective
from spacy_elmo.pretraining.optimizers import clip, dense_optimizer
from spacy_elmo.pretraining.step import Batch, Workers
from spacy_elmo.pretraining.trainer import reuse_memory

from ..common.arguments import add_common, count, output, parser_of
from ..common.machine_load import Load, LoadMeter
from .matrices_alone import multiplications_of, seconds_alone
from .plain_step import PlainStep
from .step_profile import Serial, shares

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))  # en_mini's
PAUSE = 1.0  # seconds between measurements: the other side's threads come to rest
RATE = 1e-3
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


class OurStep:
    """Calls give the mean loss and update the weights."""

    def __init__(
        self, bilm: BiLM, softmax: Softmax, negatives: int, streams: int, precision: str, threads: int
    ) -> None:
        self.settings = OptimizerSettings(name="adamw", learning_rate=RATE)  # as the plain step has
        self.parameters = list(bilm.parameters())
        self.optimizer = dense_optimizer(bilm.named_parameters(), self.settings)
        self.objective = RowObjective(softmax, negatives, self.settings)
        self.workers = Workers(bilm, threads, DTYPES[precision])
        self.state, self.steps = bilm.lstm.zero_state(streams), 0

    def __call__(self, batch: Batch, seed: int) -> float:
        scorer = self.objective.scorer(batch.targets, seed, Group())
        got = self.workers.gradients(batch, scorer, self.state, 1 / batch.targets.numel(), seed)
        self.state, self.steps = got.state, self.steps + 1
        self.objective.add(scorer, got.scored)
        clip([*got.dense, *self.objective.gradients()], self.settings.clip_norm)
        for parameter, gradient in zip(self.parameters, got.dense):
            parameter.grad = gradient
        self.optimizer.step()
        self.objective.update(RATE, self.steps)
        return got.loss

    def close(self) -> None:
        """End the threads."""
        self.workers.close()


def batches(n_words: int, streams: int, steps: int, seed: int) -> Iterator[Batch]:
    """Windows of endless streams; the word of rank r comes with a probability in proportion to 1 / r."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))
    spellings: dict[str, None] = {}
    while len(spellings) < n_words:
        spellings["".join(rng.choice(letters, rng.integers(2, 14)))] = None
    ids = words_to_ids(list(spellings))
    p = 1 / np.arange(1, n_words + 1)
    while True:
        words = rng.choice(n_words, (steps + 1, streams), p=p / p.sum())
        both = np.stack([words, words[::-1]])
        distinct, inputs = np.unique(both[:, :-1], return_inverse=True)
        yield Batch(
            torch.from_numpy(ids[distinct]),
            torch.from_numpy(inputs.reshape(2, steps, streams)),
            torch.from_numpy(both[:, 1:].copy()),
            torch.ones(steps, streams, 1),
        )


def measured(step: Callable[[Batch, int], float], given: list[Batch], threads: int) -> tuple[float, Load]:
    """Seconds for all batches, and the load meanwhile."""
    torch.set_num_threads(threads)
    time.sleep(PAUSE)
    meter = LoadMeter([os.getpid()])
    begin = time.perf_counter()
    for seed, batch in enumerate(given):
        step(batch, seed)
    return time.perf_counter() - begin, meter.stop()


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--dim", type=count, default=512, help="of the LSTMs")
    parser.add_argument("--projection", type=count, default=128, help="of the LSTMs")
    parser.add_argument("--words", type=count, default=50_000, help="of the softmax")
    parser.add_argument("--negatives", type=count, default=8192, help="of the sampled softmax")
    parser.add_argument("--streams", type=count, default=128, help="rows of a batch")
    parser.add_argument("--steps", type=count, default=20, help="positions of a batch")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and the batches")
    add_common(parser, "threads")
    parser.add_argument("--rounds", type=count, default=5, help="measurements of each side")
    parser.add_argument("--batches", type=count, default=12, help="steps in a measurement")
    parser.add_argument("--json", type=output(".json"), help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 2 steps")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.batches = 2, 2
    reuse_memory()  # as pretrain does; all sides profit

    warnings.filterwarnings("ignore", "LSTM with projections")  # torch says that oneDNN has none
    options = BiLMOptions(16, FILTERS, 1, "relu", 50, args.dim, args.projection, 2, 3.0, 3.0, True)
    source = batches(args.words, args.streams, args.steps, args.seed)
    given = [next(source) for _ in range(args.batches)]
    distinct = round(statistics.mean(len(batch.characters) for batch in given))
    print(
        f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}, {args.threads} "
        f"threads\nLSTM {args.dim}, projection {args.projection}, {args.words:,} "
        f"words, {args.negatives:,} negatives, {args.streams} x {args.steps} tokens a step, {distinct:,} distinct words"
    )
    sides = make_sides(options, args)
    first = {name: step(given[0], 0) for name, step in sides.items()}
    print("loss of the first step: " + ", ".join(f"{name} {loss:.4f}" for name, loss in first.items()) + "\n")
    rounds = measure(sides, source, args)
    report: dict[str, Any] = {
        "settings": {name: value for name, value in vars(args).items() if name != "json"},
        "distinct_words": distinct,
        "first_losses": first,
        "rounds": rounds,
    }
    report["multiplications"] = against_multiplications(options, distinct, report["rounds"], args)
    ours = sides["ours bfloat16"]
    assert isinstance(ours, OurStep)
    ours.workers.close()
    ours.workers.executor = Serial()  # type: ignore[assignment]
    report["profile"], report["between"] = shares(lambda: ours(given[0], 0), args.batches)
    print(f"\nprofile of ours in bfloat16 on one thread: {percentages(report['profile'])}")
    print(f"largest between: {percentages(report['between'])}")
    for step in sides.values():
        step.close()
    if args.json:
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf8")


def percentages(shares: dict[str, float]) -> str:
    """In words."""
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())


def make_sides(options: BiLMOptions, args: argparse.Namespace) -> dict[str, OurStep | PlainStep]:
    """All start from the same weights."""
    sides: dict[str, OurStep | PlainStep] = {}
    for name in ("ours bfloat16", "ours float32", "plain float32", "plain autocast"):
        generator = torch.Generator().manual_seed(args.seed)
        bilm, softmax = BiLM(options), Softmax(args.words, args.projection)
        bilm.reset_parameters(generator)
        softmax.reset_parameters(generator=generator)
        kind, _, how = name.partition(" ")
        if kind == "ours":
            sides[name] = OurStep(bilm, softmax, args.negatives, args.streams, how, args.threads)
        else:
            sides[name] = PlainStep(bilm, softmax, args.negatives, args.streams, how == "autocast", RATE)
    return sides


def measure(
    sides: dict[str, OurStep | PlainStep], source: Iterator[Batch], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Print a row a round and the medians. Load: the average before, cores taken by others meanwhile."""
    tokens = args.batches * args.streams * args.steps
    print("| round | " + " | ".join(f"{name}, tokens/s | load before, others" for name in sides) + " |")
    print("|---" * (1 + 2 * len(sides)) + "|")
    rounds: list[dict[str, Any]] = []
    for number in range(1, args.rounds + 1):
        given = [next(source) for _ in range(args.batches)]
        found = {name: measured(step, given, args.threads) for name, step in sides.items()}
        speeds = {name: tokens / seconds for name, (seconds, _) in found.items()}
        disturbed = any(load.disturbed for _, load in found.values())
        loads = {name: str(load) for name, (_, load) in found.items()}
        rounds.append({"tokens_per_second": speeds, "loads": loads, "disturbed": disturbed})
        print(
            f"| {number} | " + " | ".join(f"{speeds[name]:,.0f} | {loads[name]}" for name in sides) + " |", flush=True
        )
    quiet = [found for found in rounds if not found["disturbed"]]
    for title, some in (("all rounds", rounds), ("undisturbed rounds", quiet)):
        if not some:
            print("\nEvery round was disturbed: trust the ratios little and the figures less.")
            continue
        medians = median_speeds(some)
        print(f"\nmedian of {len(some)} {title}: " + ", ".join(f"{k} {v:,.0f}" for k, v in medians.items()))
        for name in list(sides)[1:]:
            ratios = [f["tokens_per_second"]["ours bfloat16"] / f["tokens_per_second"][name] for f in some]
            print(f"ours bfloat16 / {name}: {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    return rounds


def median_speeds(rounds: list[dict[str, Any]]) -> dict[str, float]:
    """By side."""
    names = rounds[0]["tokens_per_second"]
    return {name: statistics.median(found["tokens_per_second"][name] for found in rounds) for name in names}


def against_multiplications(
    options: BiLMOptions, distinct: int, rounds: list[dict[str, Any]], args: argparse.Namespace
) -> dict[str, Any]:
    """Print and return what the multiplications of a step take alone, and the share of our step that this is."""
    multiplications = multiplications_of(options, args.streams, args.steps, args.negatives, distinct, args.threads)
    flop = args.threads * sum(multiplication.flop for multiplication in multiplications)
    medians = median_speeds([found for found in rounds if not found["disturbed"]] or rounds)
    found: dict[str, Any] = {"flop": flop}
    a_token = flop / args.streams / args.steps
    print(f"\nmatrix multiplications of a step: {flop / 1e9:.1f} GFLOP, {a_token / 1e6:.1f} MFLOP a token")
    for name, dtype in DTYPES.items():
        meter = LoadMeter([os.getpid()])
        alone = seconds_alone(multiplications, dtype, args.threads)
        load = meter.stop()
        step = args.streams * args.steps / medians[f"ours {name}"]
        found[name] = {"seconds_alone": alone, "load": str(load), "seconds_of_step": step, "share": alone / step}
        print(
            f"{name}: alone {1e3 * alone:.0f} ms ({flop / alone / 1e9:,.0f} GFLOP/s; load {load}), the step "
            f"{1e3 * step:.0f} ms: {100 * alone / step:.0f} % of it at the limit of the multiplications"
        )
    return found


if __name__ == "__main__":
    main()
