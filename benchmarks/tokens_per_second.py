"""Tokens per second beside other programs, and how close to the limit of the machine, all in one run.

Ours: the engine itself, and `nlp.pipe` in a pipeline of `elmo` alone on docs that have their tokens, in each
precision. Peers: simple_elmo (bilm-tf's network under TensorFlow) and AllenNLP with the same weights, and
RoBERTa-base in spacy-curated-transformers. They run in float32, each in an environment of its own under runs/, which
the first run makes. All run in turns on the same sentences, with a pause between them, and then the limits: matrix
multiplications alone. Loading is not measured. Tokens are words, without padding and boundaries.

    python -m benchmarks.tokens_per_second
    python -m benchmarks.tokens_per_second --quick    # one round on few sentences: about two minutes
    python -m benchmarks.tokens_per_second --sizes original --batches 1,32 --peers none

Other processes' load is recorded with every figure. Rounds in which they used more than a tenth of a core are marked,
and left out if there are other rounds. Peers are measured up to batch 128 (TensorFlow needs 6 GB there), RoBERTa at the
first size alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.errors import SettingsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import load_bilm

from . import common
from .peers import KINDS, Peer, PeerError, environment

LARGEST_PEER_BATCH = 128
ROBERTA = (1, 32, 128)  # batch sizes at which it is measured
FIRST = 32  # sentences whose vectors are compared
ELMO_PEER, ROBERTA_BASE = "times the faster ELMo peer", "times RoBERTa-base"
MATRICES, VECTORS = "of the matrix limit", "of the matrix-vector rate"
COLUMNS = (
    *("batch", "precision", "what", "tokens/s", ELMO_PEER, ROBERTA_BASE),
    *("of the engine", MATRICES, VECTORS, "others' cores"),
)
TEXT = ("precision", "what", "others' cores")  # the other columns are numbers
LARGE = 4096  # rows and columns of a large matrix
TOKENS = 16  # of a measurement: enough that handing over to a thread takes no time beside them
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


# Limits of a biLM's speed: operations of its matrix multiplications, and this machine's rates of such alone


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


def matrix_limit(options: BiLMOptions, precision: str, tokens: int, distinct: int, seconds: float) -> float:
    """Return tokens a second if matrix multiplications, and nothing else, ran as fast as large ones.

    distinct: distinct words among the tokens. seconds: of the measurement, on all of torch's threads.
    """
    a, b = (torch.randn(LARGE, LARGE).to(DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    rate = 2 * LARGE**3 / median_seconds(lambda: torch.mm(a, b, out=out), seconds)
    return tokens * rate / (tokens * lstm_flop(options) + distinct * encoder_flop(options))


def matrix_vector_rate(options: BiLMOptions, precision: str, seconds: float) -> float:
    """Return how often a second one row is multiplied by the recurrent and projection weights, layer after layer.

    That is the least that a token costs at batch 1. The fastest of four ways counts: the directions after each other on
    all threads, or each on a thread of its own, by torch.mv or by F.linear.
    """
    dtype, threads = DTYPES[precision], torch.get_num_threads()
    shapes = [(4 * options.dim, options.projection_dim)]
    if options.has_lstm_projection:
        shapes.append((options.projection_dim, options.dim))
    directions = [[torch.randn(one).to(dtype) for _ in range(options.n_layers) for one in shapes] for _ in (0, 1)]
    rows = {weight.shape[1]: torch.randn(weight.shape[1]).to(dtype) for weight in directions[0]}

    def read(multiply: Callable[[Tensor, Tensor], Tensor], weights: list[Tensor]) -> None:
        for weight in weights * TOKENS:
            multiply(weight, rows[weight.shape[1]])

    def both(way: Callable[..., Any], multiply: Callable[[Tensor, Tensor], Tensor]) -> None:
        list(way(partial(read, multiply), directions))

    with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        ways = (map, pool.map) if threads > 1 else (map,)
        multiplications = (torch.mv, lambda weight, x: F.linear(x[None], weight))
        found = [median_seconds(partial(both, way, by), seconds / 4) for way in ways for by in multiplications]
    torch.set_num_threads(threads)
    return TOKENS / min(found)


def median_seconds(run: Callable[[], object], seconds: float) -> float:
    run()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


# Sides and their rounds


class Side(NamedTuple):
    """What is measured. kind: "ours", "elmo" (a peer that runs our biLM), "other" (another peer) or "limit"."""

    title: str
    precision: str
    kind: str = "ours"


class SizeRun:
    """All sides at one size, loaded. A peer or a precision that fails is left out, and a note says why."""

    def __init__(self, size: str, sentences: common.Sentences, peers: list[str], args: argparse.Namespace) -> None:
        self.size, self.sentences, self.args = size, sentences, args
        self.options, self.notes = common.options_of(size), list[str]()
        self.folder = common.RUNS / "speed" / size
        files = common.write_model(self.folder, size, sentences)
        bilm = load_bilm(**files)
        self.sides: dict[Side, common.Seconds] = {}
        self.peers: list[Peer] = []
        engines = {}
        for precision in args.precisions:
            try:
                engine = engines[precision] = common.make_engine(bilm, precision)
            except SettingsError as error:
                self.note(f"{precision} is left out: {error}")
                continue
            self.sides[Side("the engine", precision)] = common.engine_seconds(engine, sentences)
            pipe = common.make_pipeline(files, precision)
            self.sides[Side("nlp.pipe", precision)] = common.pipe_seconds(pipe, sentences)
        for name in peers:
            try:
                peer = Peer(name, self.folder, max(FIRST, min(max(args.batches), LARGEST_PEER_BATCH)), args.threads)
                about = ", ".join(f"{key} {value}" for key, value in peer.about.items())
                difference = ""
                if peer.kind.elmo and engines:  # in the first batch that it reads, because only there its state is zero
                    (precision, engine), part = next(iter(engines.items())), sentences[: min(FIRST, args.warm_up)]
                    peer.first(len(part), self.folder / "first.npy")
                    pairs = zip(np.load(self.folder / "first.npy"), engine.run(part))
                    largest = max(float(np.abs(a[: layers.shape[1]] - layers.mean(0)).max()) for a, layers in pairs)
                    difference = f"; largest difference in {len(part)} sentences, {precision}: {largest:.1e}"
                self.note(f"{peer.kind.title}: {about}{difference}.")
                self.peers.append(peer)
                self.sides[Side(peer.kind.title, "float32", "elmo" if peer.kind.elmo else "other")] = peer.seconds
            except PeerError as error:
                self.note(f"{name} is left out: {error}")

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(f"{self.size}: {text}", file=sys.stderr, flush=True)

    def rounds(self, batch: int) -> dict[Side, common.Rounds]:
        """Measure all rounds at a batch size: in turn one of our sides and a peer, and then the limits."""
        args, n = self.args, count(self.args.sentences, batch)
        part = self.sentences[:n]
        tokens = sum(map(len, part))
        distinct = sum(len({word for s in part[k : k + batch] for word in s}) for k in range(0, n, batch))
        ours = [side for side in self.sides if side.kind == "ours"]
        peers = [side for side in self.sides if side.kind == "elmo" and batch <= LARGEST_PEER_BATCH]
        peers += [side for side in self.sides if side.kind == "other" and batch in ROBERTA]
        runs: dict[Side, Callable[[], float]] = {}
        for side in (one for pair in zip_longest(ours, peers) for one in pair if one is not None):
            self.sides[side](min(n, args.warm_up), batch)
            runs[side] = partial(common.rate_of, partial(self.sides[side], n, batch), tokens, args.least)
        for precision in dict.fromkeys(side.precision for side in ours):
            limit = partial(matrix_limit, self.options, precision, tokens, distinct, args.least / 2)
            runs[Side(MATRICES, precision, "limit")] = limit
            if batch == 1:
                rate = partial(matrix_vector_rate, self.options, precision, args.least / 2)
                runs[Side(VECTORS, precision, "limit")] = rate
        found: dict[Side, common.Rounds] = {side: [] for side in runs}
        for _ in range(args.rounds):
            for side, run in runs.items():  # the peers' work is not others'
                found[side].append(common.measured(run, args.pause, *(peer.process.pid for peer in self.peers)))
                name, last = f"{self.size}, batch {batch}, {side.title}, {side.precision}", found[side][-1]
                print(f"{name}: {last.rate:,.0f} tokens/s; others {last.others:.2f}", file=sys.stderr, flush=True)
        return found


def count(sentences: int, batch: int) -> int:
    """Return how many sentences are read at a batch size: full batches, and fewer if the batch size is 1."""
    return max(1, sentences // 8) if batch == 1 else max(1, sentences // batch) * batch


def rows_of(batch: int, rounds: dict[Side, common.Rounds]) -> list[dict[str, str]]:
    """Return the rows of the table by the names of COLUMNS. A cell is empty if there is nothing to compare with."""
    peers = [series for side, series in rounds.items() if side.kind == "elmo"]
    faster = max(peers, key=common.median_rate, default=None)
    roberta = next((series for side, series in rounds.items() if side.kind == "other"), None)
    rows = []
    for side, series in sorted(rounds.items(), key=lambda item: item[0].kind != "ours"):
        if side.kind == "limit":
            continue
        cells = dict.fromkeys(COLUMNS, "") | {"batch": str(batch), "precision": side.precision, "what": side.title}
        cells |= {"tokens/s": f"{common.median_rate(series):,.0f}", "others' cores": common.load_of(series)}
        if side.kind == "ours":
            others = {ELMO_PEER: faster, ROBERTA_BASE: roberta}
            if side.title != "the engine":
                others["of the engine"] = rounds.get(Side("the engine", side.precision))
            others |= {name: rounds.get(Side(name, side.precision, "limit")) for name in (MATRICES, VECTORS)}
            for name, other in others.items():
                if other is not None:
                    cells[name] = common.compared(series, other, ".2f" if name.startswith("times") else ".0%")
        rows.append(cells)
    return rows


def main() -> None:
    parser = common.parser_of(__doc__, "precisions", "threads")
    parser.add_argument("--quick", action="store_true", help="one round, original size, batch 1 and 32")
    parser.add_argument("--sizes", type=common.parts_of, help=f"with commas; else {','.join(common.SIZES)}")
    parser.add_argument("--batches", type=common.numbers_of, help="sentences, with commas; else 1,32,128,512")
    parser.add_argument("--rounds", type=int, help="measurements of each side; else 3")
    parser.add_argument("--sentences", type=int, help="of a measurement, an eighth of them at batch 1; else 512")
    parser.add_argument("--peers", type=common.parts_of, default=",".join(KINDS), help="with commas, or none")
    # seconds that a measurement lasts at least, and before it; sentences that each side reads before the first round
    full = {"sizes": list(common.SIZES), "batches": [1, 32, 128, 512], "rounds": 3, "sentences": 512}
    quick = {"sizes": ["original"], "batches": [1, 32], "rounds": 1, "sentences": 32}
    args = parser.parse_args()
    defaults: dict[str, Any] = quick if args.quick else full
    defaults |= (
        {"least": 0.2, "pause": 0.1, "warm_up": 8} if args.quick else {"least": 2.0, "pause": 1.0, "warm_up": 64}
    )
    vars(args).update({name: value for name, value in defaults.items() if getattr(args, name, None) is None})
    sentences = common.generated(max(count(args.sentences, batch) for batch in args.batches), 0)
    torch.set_num_threads(args.threads)
    print(f"{machine(args.threads)}\n{described(sentences)}\n", flush=True)
    peers = []
    for name in args.peers if args.peers != ["none"] else ():
        try:
            environment(name)
            peers.append(name)
        except PeerError as error:
            print(f"{name} is left out: {error}\n", flush=True)
    for size in args.sizes:
        run = SizeRun(size, sentences, [name for name in peers if KINDS[name].elmo or size == args.sizes[0]], args)
        try:
            rows = [cells for batch in args.batches for cells in rows_of(batch, run.rounds(batch))]
        finally:
            for peer in run.peers:
                peer.close()
        columns = [name for name in COLUMNS if any(cells[name] for cells in rows)]
        rule = ["---" if name in TEXT else "--:" for name in columns]
        table = "\n".join(map(common.row, [columns, rule, *([cells[name] for name in columns] for cells in rows)]))
        print(f"### {size} size", table, "\n".join(run.notes), sep="\n\n", end="\n\n", flush=True)


def machine(threads: int) -> str:
    state = kernels.loops_state()
    loops = (", ".join(state.instruction_sets) or "plain") if state.compiled else "none"
    return (
        f"{platform.machine()}, {os.cpu_count()} processors, {torch.backends.cpu.get_cpu_capability()}, torch "
        f"{torch.__version__}, spaCy {version('spacy')}, compiled loops: {loops}, {threads} threads each"
    )


def described(sentences: common.Sentences) -> str:
    """Describe sentences: their tokens, and the mean share of distinct words in batches of 32."""
    tokens, size = sum(map(len, sentences)), min(32, len(sentences))
    batches = [sentences[k : k + size] for k in range(0, len(sentences) - size + 1, size)]
    share = 100 * statistics.mean(len({w for s in part for w in s}) / sum(map(len, part)) for part in batches)
    mean = tokens / len(sentences)
    return f"{len(sentences)} sentences, {tokens:,} tokens, mean {mean:.1f}, {share:.0f} % of 32 sentences' distinct"


if __name__ == "__main__":
    main()
