"""Tokens per second beside other programs, and how close to the limit of the machine, all in one run.

Ours: the engine itself, and `nlp.pipe` in a pipeline of `elmo` alone on docs that have their tokens, in each
precision. Peers: simple_elmo (bilm-tf's network under TensorFlow) and AllenNLP with the same random weights, and
RoBERTa-base in spacy-curated-transformers. They run in float32, each in an environment of its own under runs/, which
the first run makes. All run in turns on the same sentences, with a pause between them. Then the limit is measured:
large matrix multiplications alone. Loading is not measured. Tokens are words, without padding and
boundaries.

    python -m benchmarks.tokens_per_second
    python -m benchmarks.tokens_per_second --quick    # one round on few sentences: about two minutes
    python -m benchmarks.tokens_per_second --sizes original --batches 1,32 --peers none

Other processes' load is recorded with every figure. Rounds in which they used more than a tenth of a core are marked,
and left out if there are other rounds. Peers are measured up to batch 128 (TensorFlow needs 6 GB there), RoBERTa at the
first size alone.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.errors import SettingsError
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.inference import Engine
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.loading import Precision

from .common import (
    RUNS,
    SIZES,
    Measured,
    Rounds,
    Seconds,
    Sentences,
    compared,
    engine_seconds,
    generated,
    load_of,
    make_engine,
    make_pipeline,
    measured,
    median_rate,
    numbers_of,
    options_of,
    parser_of,
    parts_of,
    pipe_seconds,
    rate_of,
    write_model,
)
from .common import row as table_row
from .peers import KINDS, Peer, PeerError, environment

LARGEST_PEER_BATCH = 128
FIRST = 32  # sentences whose vectors are compared
COLUMNS = (
    *("batch", "precision", "what", "tokens/s", "times the faster ELMo peer", "times RoBERTa-base"),
    *("of the engine", "of the matrix limit", "of the matrix-vector rate", "others' cores"),
)
TEXT = ("precision", "what", "others' cores")  # the other columns are numbers


# Limits of a biLM's speed: operations of its matrix multiplications, and this machine's rates of such alone

LARGE = 4096  # rows and columns of a large matrix
TOKENS = 16  # of a measurement: enough that handing over to a thread takes no time beside them
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


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


def tokens_at_rate(options: BiLMOptions, tokens: int, distinct: int, rate: float) -> float:
    """Return tokens a second if a batch's matrix multiplications, and nothing else, ran at a rate.

    distinct: distinct words among the tokens. rate: FLOP a second.
    """
    return tokens * rate / (tokens * lstm_flop(options) + distinct * encoder_flop(options))


def large_matrix_rate(precision: str, seconds: float) -> float:
    """Measure FLOP a second of large matrix multiplications on all of torch's threads, for so many seconds."""
    a, b = (torch.randn(LARGE, LARGE).to(DTYPES[precision]) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * LARGE**3 / _median_seconds(lambda: torch.mm(a, b, out=out), seconds)


class MatrixVectorRates:
    """Rate of one row times the recurrent and projection weights of all layers and directions, layer after layer.

    That is the least that a token costs at batch 1. The fastest of four ways counts: both directions on all threads, or
    each on a thread of its own, by torch.mv or by F.linear.
    """

    def __init__(self, options: BiLMOptions, precision: str) -> None:
        shapes = [(4 * options.dim, options.projection_dim)]
        if options.has_lstm_projection:
            shapes.append((options.projection_dim, options.dim))
        dtype = DTYPES[precision]
        self.directions = [
            [torch.randn(shape).to(dtype) for _ in range(options.n_layers) for shape in shapes] for _ in (0, 1)
        ]
        self.rows = {weight.shape[1]: torch.randn(weight.shape[1]).to(dtype) for weight in self.directions[0]}

    def tokens_a_second(self, seconds: float) -> float:
        """Measure all ways for so many seconds together; return the median of the fastest."""
        n_threads = torch.get_num_threads()
        multiplications: tuple[Callable[[Tensor], Tensor], ...] = (
            lambda weight: torch.mv(weight, self.rows[weight.shape[1]]),
            lambda weight: F.linear(self.rows[weight.shape[1]][None], weight),
        )

        def one(multiply: Callable[[Tensor], Tensor], weights: list[Tensor]) -> None:
            for weight in weights * TOKENS:
                multiply(weight)

        def both(multiply: Callable[[Tensor], Tensor]) -> None:
            for weights in self.directions:
                one(multiply, weights)

        def side_by_side(multiply: Callable[[Tensor], Tensor]) -> None:
            list(pool.map(partial(one, multiply), self.directions))

        with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            ways = (both, side_by_side) if n_threads > 1 else (both,)
            n = len(ways) * len(multiplications)
            found = [_median_seconds(partial(way, by), seconds / n) for way in ways for by in multiplications]
        torch.set_num_threads(n_threads)
        return TOKENS / min(found)


def _median_seconds(run: Callable[[], object], seconds: float) -> float:
    run()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


class Plan(NamedTuple):
    rounds: int
    sentences: int  # of a measurement
    least: float  # seconds that it lasts at least
    pause: float  # seconds before it
    warm_up: int  # sentences that each side reads before the first round
    matrices: float  # seconds of a measurement of the limits
    roberta: tuple[int, ...]  # batch sizes at which RoBERTa is measured

    def count(self, batch: int) -> int:
        """Return how many sentences are read at a batch size: full batches, and fewer if the batch size is 1."""
        return max(1, self.sentences // 8) if batch == 1 else max(1, self.sentences // batch) * batch


FULL = Plan(rounds=3, sentences=512, least=2.0, pause=1.0, warm_up=64, matrices=1.0, roberta=(1, 32, 128))
QUICK = Plan(rounds=1, sentences=32, least=0.2, pause=0.1, warm_up=8, matrices=0.3, roberta=(32,))


class Side(NamedTuple):
    """What is measured: "engine", "nlp.pipe" or a peer, its title, and whether it is a peer that runs our biLM."""

    kind: str
    precision: str
    title: str
    elmo: bool = False

    @property
    def ours(self) -> bool:
        """Whether it is a part of this package."""
        return self.kind in ("engine", "nlp.pipe")


class Cell(NamedTuple):
    """All rounds at one size and batch size.

    limits, vectors: tokens a second that large and matrix-vector multiplications allow, by precision.
    """

    size: str
    batch: int
    sides: dict[Side, Rounds]
    limits: dict[str, Rounds]
    vectors: dict[str, Rounds]


class SizeRun:
    """All sides at one size, loaded. A peer or a precision that fails is left out, and a note says why.

    largest: the largest batch size. threads: of each peer.
    """

    def __init__(
        self,
        size: str,
        sentences: Sentences,
        peers: Sequence[str],
        precisions: Sequence[Precision],
        largest: int,
        threads: int,
        plan: Plan,
    ) -> None:
        self.size, self.sentences, self.plan = size, sentences, plan
        self.options, self.notes = options_of(size), list[str]()
        self.folder = RUNS / "speed" / size
        files = write_model(self.folder, self.options, sentences)
        bilm = load_bilm(**files)
        self.ours: dict[Side, Seconds] = {}
        self.peers: dict[Side, Peer] = {}
        self.engines: dict[str, Engine] = {}
        for precision in precisions:
            try:
                engine = self.engines[precision] = make_engine(bilm, precision)
            except SettingsError as error:
                self.note(f"{precision} is left out: {error}")
                continue
            self.ours[Side("engine", precision, "the engine")] = engine_seconds(engine, sentences)
            pipe = make_pipeline(files, precision)
            self.ours[Side("nlp.pipe", precision, "nlp.pipe")] = pipe_seconds(pipe, sentences)
        self.vectors = {precision: MatrixVectorRates(self.options, precision) for precision in self.engines}
        for name in peers:
            try:
                peer = Peer(name, self.folder, max(FIRST, min(largest, LARGEST_PEER_BATCH)), threads)
                self.peers[Side(name, "float32", peer.kind.title, peer.kind.elmo)] = peer
                about = ", ".join(f"{key} {value}" for key, value in peer.about.items())
                self.note(f"{peer.kind.title}: {about}{self.difference(peer)}.")
            except PeerError as error:
                self.note(f"{name} is left out: {error}")

    def note(self, text: str) -> None:
        self.notes.append(text)
        print(f"{self.size}: {text}", file=sys.stderr, flush=True)

    def difference(self, peer: Peer) -> str:
        """Return how much the means of the layers differ from a peer's; empty if it has another network.

        They are compared in the first batch that the peer reads, because only there its state is zero.
        """
        if not peer.kind.elmo or not self.engines:
            return ""
        precision, engine = next(iter(self.engines.items()))
        part = self.sentences[: min(FIRST, self.plan.warm_up)]
        file = self.folder / "first.npy"
        peer.first(len(part), file)
        pairs = zip(np.load(file), engine.run(part))
        largest = max(float(np.abs(row[: layers.shape[1]] - layers.mean(0)).max()) for row, layers in pairs)
        return f"; largest difference in the first {len(part)} sentences, {precision}: {largest:.1e}"

    def cell(self, batch: int) -> Cell:
        """Measure all rounds at a batch size: in turn one of our sides and a peer, and then the limits."""
        n = self.plan.count(batch)
        part = self.sentences[:n]
        tokens = sum(map(len, part))
        distinct = sum(len({word for s in part[k : k + batch] for word in s}) for k in range(0, n, batch))
        runs = dict(self.ours)
        for side, peer in self.peers.items():
            if batch <= LARGEST_PEER_BATCH if side.elmo else batch in self.plan.roberta:
                runs[side] = peer.seconds
        turns = zip_longest(self.ours, [side for side in runs if not side.ours])
        sides: dict[Side, Rounds] = {side: [] for pair in turns for side in pair if side is not None}
        cell = Cell(self.size, batch, sides, {}, {})
        for number in range(self.plan.rounds + 1):  # the first warms up
            for side in cell.sides:
                run = runs[side]
                if number == 0:
                    run(min(n, self.plan.warm_up), batch)
                    continue
                found = self.measured(partial(rate_of, partial(run, n, batch), tokens, self.plan.least))
                cell.sides[side].append(found)
                name = f"{self.size}, batch {batch}, {side.title}, {side.precision}"
                print(f"{name}: {found.rate:,.0f} tokens/s; load {found.load}", file=sys.stderr, flush=True)
            for precision in self.engines if number else ():
                limit = self.measured(partial(self.limit, precision, tokens, distinct))
                cell.limits.setdefault(precision, []).append(limit)
                if batch == 1:
                    vectors = self.measured(partial(self.vectors[precision].tokens_a_second, self.plan.matrices))
                    cell.vectors.setdefault(precision, []).append(vectors)
        return cell

    def limit(self, precision: str, tokens: int, distinct: int) -> float:
        """Return the tokens a second that the rate of large matrix multiplications allows."""
        return tokens_at_rate(self.options, tokens, distinct, large_matrix_rate(precision, self.plan.matrices))

    def measured(self, run: Callable[[], float]) -> Measured:
        """Measure after the pause; the peers' work is not others'."""
        return measured(run, self.plan.pause, *(peer.process.pid for peer in self.peers.values()))

    def close(self) -> None:
        for peer in self.peers.values():
            peer.close()


def row(cell: Cell, side: Side) -> dict[str, str]:
    """Return a row of the table by the names of COLUMNS. A cell is empty if there is nothing to compare with."""
    series = cell.sides[side]
    cells = dict.fromkeys(COLUMNS, "") | {
        "batch": str(cell.batch),
        "precision": side.precision,
        "what": side.title,
        "tokens/s": f"{median_rate(series):,.0f}",
        "others' cores": load_of(series),
    }
    if not side.ours:
        return cells
    peers = [other for other in cell.sides if other.elmo]
    faster = max(peers, key=lambda other: median_rate(cell.sides[other]), default=None)
    roberta = next((other for other in cell.sides if other.kind == "roberta"), None)
    for name, other in (("times the faster ELMo peer", faster), ("times RoBERTa-base", roberta)):
        if other is not None:
            cells[name] = compared(series, cell.sides[other], ".2f")
    engine = Side("engine", side.precision, "the engine")
    if engine != side and engine in cell.sides:
        cells["of the engine"] = compared(series, cell.sides[engine], ".0%")
    for name, limits in (("of the matrix limit", cell.limits), ("of the matrix-vector rate", cell.vectors)):
        if side.precision in limits:
            cells[name] = compared(series, limits[side.precision], ".0%")
    return cells


def rows_of(cell: Cell) -> list[dict[str, str]]:
    return [row(cell, side) for side in sorted(cell.sides, key=lambda side: not side.ours)]


def markdown(rows: Sequence[dict[str, str]]) -> str:
    columns = [name for name in COLUMNS if any(row[name] for row in rows)]
    rule = ["---" if name in TEXT else "--:" for name in columns]
    return "\n".join(map(table_row, [columns, rule, *([row[name] for name in columns] for row in rows)]))


def main() -> None:
    parser = parser_of(__doc__, "precisions", "threads")
    parser.add_argument("--quick", action="store_true", help="one round, original size, batch 1 and 32")
    parser.add_argument("--sizes", type=parts_of, help=f"of the network, with commas; else {','.join(SIZES)}")
    parser.add_argument("--batches", type=numbers_of, help="sentences of a batch, with commas; else 1,32,128,512")
    parser.add_argument("--rounds", type=int, help="measurements of each side; else 3")
    parser.add_argument("--sentences", type=int, help="of a measurement, an eighth of them at batch 1; else 512")
    parser.add_argument("--peers", type=parts_of, default=",".join(KINDS), help="with commas, or none")
    args = parser.parse_args()
    sizes = args.sizes or (["original"] if args.quick else list(SIZES))
    batches = args.batches or ([1, 32] if args.quick else [1, 32, 128, 512])
    given = {name: value for name in ("rounds", "sentences") if (value := getattr(args, name))}
    plan = (QUICK if args.quick else FULL)._replace(**given)
    n = max(plan.count(batch) for batch in batches)
    sentences = generated(n, 0)
    torch.set_num_threads(args.threads)
    print(f"{machine(args.threads)}\n{described(sentences)}\n", flush=True)
    peers = [name for name in args.peers if name != "none" and installed(name)]
    for size in sizes:
        names = [name for name in peers if KINDS[name].elmo or size == sizes[0]]
        run = SizeRun(size, sentences, names, args.precisions, max(batches), args.threads, plan)
        try:
            rows = [row for batch in batches for row in rows_of(run.cell(batch))]
        finally:
            run.close()
        print(f"### {size} size", markdown(rows), "\n".join(run.notes), sep="\n\n", end="\n\n", flush=True)


def installed(name: str) -> bool:
    """Tell whether the peer's environment is there or could be made; print why not."""
    try:
        environment(name)
    except PeerError as error:
        print(f"{name} is left out: {error}\n", flush=True)
        return False
    return True


def machine(threads: int) -> str:
    state = kernels.loops_state()
    loops = (", ".join(state.instruction_sets) or "plain") if state.compiled else "none"
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "?"
    return (
        f"{platform.machine()}, {os.cpu_count()} processors, {torch.backends.cpu.get_cpu_capability()}, torch "
        f"{torch.__version__}, spaCy {version('spacy')}, compiled loops: {loops}, {threads} threads each, load {load}"
    )


def described(sentences: Sentences) -> str:
    """Describe sentences: their tokens, and the mean share of distinct words in batches of 32."""
    tokens, size = sum(map(len, sentences)), min(32, len(sentences))
    batches = [sentences[k : k + size] for k in range(0, len(sentences) - size + 1, size)]
    shares = [len({w for s in part for w in s}) / sum(map(len, part)) for part in batches]
    share, mean = 100 * sum(shares) / len(shares), tokens / len(sentences)
    return f"{len(sentences)} sentences, {tokens:,} tokens, mean {mean:.1f}, {share:.0f} % of 32 sentences' distinct"


if __name__ == "__main__":
    main()
