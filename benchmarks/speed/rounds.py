"""Measure all sides of tokens_per_second.py at one size: they are loaded, measured in turns, and ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

import numpy as np

from spacy_elmo.errors import SettingsError
from spacy_elmo.inference import Engine
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.loading import Precision

from ..common.machine_load import LoadMeter
from ..common.model_sizes import RUNS, options_of, write_model
from ..common.our_sides import Seconds, engine_seconds, make_engine, make_pipeline, pipe_seconds
from .matrix_rates import MatrixVectorRates, large_matrix_rate
from .operations import tokens_at_rate
from .peers.environments import Peer, PeerError
from .table import Cell, Measured, Side

LARGEST_PEER_BATCH = 128
FIRST = 32  # sentences whose vectors are compared


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    rounds: how often each side is measured.
    sentences: number of sentences of a measurement.
    least: seconds that a measurement lasts at least. The sentences are read again until then.
    pause: seconds before each measurement, in which the threads of the other sides become idle.
    warm_up: number of sentences that each side reads before the first round.
    matrices: seconds of a measurement of the limits.
    roberta: batch sizes at which RoBERTa is measured.
    """

    rounds: int
    sentences: int
    least: float
    pause: float
    warm_up: int
    matrices: float
    roberta: tuple[int, ...]

    def count(self, batch: int) -> int:
        """Return how many sentences are read at a batch size: full batches, and fewer if the batch size is 1."""
        return max(1, self.sentences // 8) if batch == 1 else max(1, self.sentences // batch) * batch


class SizeRun:
    """All sides at one size, loaded.

    size: of the network.
    sentences: the words of each.
    peers: names of the other programs. One that fails is left out, and a note says why.
    precisions: of the engine.
    largest: the largest batch size.
    threads: of each peer.
    plan: how much is measured.
    """

    def __init__(
        self,
        size: str,
        sentences: list[list[str]],
        peers: Sequence[str],
        precisions: Sequence[Precision],
        largest: int,
        threads: int,
        plan: Plan,
    ) -> None:
        self.size, self.sentences, self.plan = size, sentences, plan
        self.options, self.notes = options_of(size), list[str]()
        folder = RUNS / "speed" / size
        files = write_model(folder, self.options, 0, sentences)
        bilm = load_bilm(**files)
        self.ours: dict[Side, Seconds] = {}
        self.peers: dict[Side, Peer] = {}
        self.engines: dict[str, Engine] = {}
        for precision in precisions:
            try:
                engine = self.engines[precision] = make_engine(bilm, precision)
                nlp = make_pipeline(files, precision)
            except SettingsError as error:
                self.note(f"{precision} is left out: {error}")
                continue
            self.ours[Side("engine", precision, "the engine")] = engine_seconds(engine, sentences)
            self.ours[Side("nlp.pipe", precision, "nlp.pipe")] = pipe_seconds(nlp, sentences)
        self.vectors = {precision: MatrixVectorRates(self.options, precision) for precision in self.engines}
        for name in peers:
            try:
                peer = Peer(name, folder, max(FIRST, min(largest, LARGEST_PEER_BATCH)), threads)
                self.peers[Side(name, "float32", peer.kind.title, peer.kind.elmo)] = peer
                about = ", ".join(f"{key} {value}" for key, value in peer.about.items())
                self.note(f"{peer.kind.title}: {about}{self.difference(peer)}.")
            except PeerError as error:
                self.note(f"{name} is left out: {error}")

    def __enter__(self) -> SizeRun:
        return self

    def __exit__(self, *error: object) -> None:
        for peer in self.peers.values():
            peer.close()

    def note(self, text: str) -> None:
        """Print a note, and store it for the page that has the table."""
        self.notes.append(text)
        print(f"{self.size}: {text}", file=sys.stderr, flush=True)

    def difference(self, peer: Peer) -> str:
        """Return how much the means of the layers differ from a peer's, in words; empty if it has another network.

        They are compared in the first batch that the peer reads, because only there its state is zero.
        """
        if not peer.kind.elmo or not self.engines:
            return ""
        precision, engine = next(iter(self.engines.items()))
        part = self.sentences[: min(FIRST, self.plan.warm_up)]
        file = RUNS / "speed" / self.size / "first.npy"
        peer.first(len(part), file)
        pairs = zip(np.load(file), engine.run(part))
        largest = max(float(np.abs(row[: layers.shape[1]] - layers.mean(0)).max()) for row, layers in pairs)
        return f"; largest difference in the first {len(part)} sentences, {precision}: {largest:.1e}"

    def cell(self, batch: int) -> Cell:
        """Measure all rounds at a batch size: in turn one of our sides and a peer, and then the limits."""
        sides = dict(self.ours)
        n = self.plan.count(batch)
        part = self.sentences[:n]
        tokens = sum(map(len, part))
        distinct = sum(len({word for s in part[k : k + batch] for word in s}) for k in range(0, n, batch))
        peers = [side for side in self.peers if self.is_measured(side, batch)]
        sides.update({side: self.peers[side].seconds for side in peers})
        turns = [side for pair in zip_longest(self.ours, peers) for side in pair if side is not None]
        cell = Cell(self.size, batch, {side: [] for side in turns}, {}, {})
        for side in turns:
            self.attempt(cell, side, sides[side], min(n, self.plan.warm_up), batch, None)
        for _ in range(self.plan.rounds):
            for side in list(cell.sides):
                self.attempt(cell, side, sides[side], n, batch, tokens)
            for precision in self.engines:
                limit = self.measured(partial(self.limit, precision, tokens, distinct))
                cell.limits.setdefault(precision, []).append(limit)
                if batch == 1:
                    vectors = self.measured(partial(self.vectors[precision].tokens_a_second, self.plan.matrices))
                    cell.vectors.setdefault(precision, []).append(vectors)
        return cell

    def is_measured(self, side: Side, batch: int) -> bool:
        """Return whether a peer is measured at this batch size."""
        return batch <= LARGEST_PEER_BATCH if side.elmo else batch in self.plan.roberta

    def attempt(self, cell: Cell, side: Side, run: Seconds, n: int, batch: int, tokens: int | None) -> None:
        """Measure a side once. A peer that fails is left out from now on.

        cell: receives the result.
        run: returns the seconds for the first n sentences in batches.
        n: number of sentences.
        tokens: number of tokens of these sentences; None: this is a warm-up, and nothing is measured.
        """
        try:
            if tokens is None:
                run(n, batch)
                return
            measured = self.measured(partial(rate_of, partial(run, n, batch), tokens, self.plan.least))
            cell.sides[side].append(measured)
            name = f"{self.size}, batch {batch}, {side.title}, {side.precision}"
            print(f"{name}: {measured.rate:,.0f} tokens/s; load {measured.load}", file=sys.stderr, flush=True)
        except PeerError as error:
            self.note(f"{side.title} is left out from batch {batch} on: {error}")
            self.peers.pop(side).close()
            del cell.sides[side]

    def limit(self, precision: str, tokens: int, distinct: int) -> float:
        """Return the tokens a second that the rate of large matrix multiplications allows."""
        return tokens_at_rate(self.options, tokens, distinct, large_matrix_rate(precision, self.plan.matrices))

    def measured(self, run: Callable[[], float]) -> Measured:
        """Run a measurement, and return its rate and the load of the machine meanwhile."""
        time.sleep(self.plan.pause)
        meter = LoadMeter([os.getpid(), *(peer.process.pid for peer in self.peers.values())])
        rate = run()
        return Measured(rate, meter.stop())


def rate_of(run: Callable[[], float], tokens: int, least: float) -> float:
    """Return the tokens a second of a run that is repeated until it has lasted long enough.

    run: runs once, and returns its seconds.
    tokens: number of tokens of a run.
    least: seconds that all runs last together, at least.
    """
    seconds, passes = run(), 1
    while seconds < least:
        seconds, passes = seconds + run(), passes + 1
    return passes * tokens / seconds
