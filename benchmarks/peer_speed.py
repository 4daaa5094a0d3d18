"""Tokens per second beside simple_elmo (bilm-tf's network under TensorFlow), in one run on the same sentences.

Ours is `nlp.pipe` over tokenised docs in a pipeline of `elmo` alone, float32; each doc's layers are kept and the mean
of the layers is read. The peer returns the mean of the layers of each batch. Both have the same random weights, by
default in the sizes of the original model, the same batch size and number of threads, and take turns: ours, peer,
ours, peer ... after a warm-up. Loading is not measured. Tokens are the words, without padding and boundaries.

    python benchmarks/peer_speed.py                  # original size, batch 32
    python benchmarks/peer_speed.py --size mini --quick

The peer is installed into runs/peer_venv at the first run. Other processes' load is printed with every figure: a
round in which they took more than a tenth of a core is marked as disturbed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from english_like import distinct_share, from_text, generated
from machine_load import Load, LoadMeter
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo import bilms
from spacy_elmo.formats import BiLMOptions, read_options, write_options, write_weights
from spacy_elmo.modules import BiLM

RUNS = Path(__file__).parents[1] / "runs"
PEER = ("simple_elmo==0.9.2", "tensorflow-cpu==2.21.0", "tf_keras==2.21.0")
OFFICIAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
PAUSE = 1.0  # seconds between measurements: the other side's threads come to rest


def options_of(size: str) -> BiLMOptions:
    """original and small: the official ones of these names; mini: the embedded biLM's."""
    if size == "mini":
        return read_options(bilms.paths("en_mini")[0])
    dim, projection_dim, n_highway = {"original": (4096, 512, 2), "small": (1024, 128, 1)}[size]
    return BiLMOptions(16, OFFICIAL_FILTERS, n_highway, "relu", 50, dim, projection_dim, 2, 3.0, 3.0, True)


def write_model(folder: Path, options: BiLMOptions, seed: int, sentences: list[list[str]]) -> None:
    """Random weights, and the peer's vocabulary: it keeps the character ids of the words in it."""
    folder.mkdir(parents=True, exist_ok=True)
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    write_options(folder / "options.json", options)
    write_weights(folder / "model.hdf5", options, bilm.to_arrays())
    words = [word for word, _ in Counter(w for s in sentences for w in s).most_common()]
    (folder / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n", encoding="utf-8")
    (folder / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")


def peer_python(folder: Path) -> Path:
    """The interpreter of the peer's environment, which is made where it does not exist."""
    python = folder / "bin" / "python"
    check = f"import importlib.metadata as m\nfor p in {PEER!r}: assert m.version(p.split('==')[0]) == p.split('==')[1]"
    if not python.exists() or subprocess.run([python, "-c", check], capture_output=True).returncode:
        print(f"installing {', '.join(PEER)} into {folder.name}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "install", "-q", *PEER], check=True)
    return python


class Peer:
    """The subprocess, see peer_worker.py."""

    def __init__(self, python: Path, model: Path, batch: int, threads: int) -> None:
        self.log = (model / "peer.log").open("w")
        worker = Path(__file__).with_name("peer_worker.py")
        command = [str(part) for part in (python, worker, model, model / "sentences.json", batch, threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, encoding="utf-8"
        )
        self.versions = self._reply()

    def ask(self, command: str) -> dict[str, Any]:
        """Send a line, return the answer."""
        assert self.process.stdin is not None
        print(command, file=self.process.stdin, flush=True)
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer ended with {self.process.wait()}; see {self.log.name}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()


def run_ours(nlp: Language, docs: list[Doc], batch: int) -> float:
    """Seconds. Each doc's mix is read, then what is kept on it is freed, as a user of a long stream would."""
    checksum = 0.0
    begin = time.perf_counter()
    for doc in nlp.pipe(docs, batch_size=batch):
        checksum += float(doc._.elmo[0, 0])
        doc._.elmo = None
    seconds = time.perf_counter() - begin
    assert np.isfinite(checksum)
    return seconds


def difference(nlp: Language, docs: list[Doc], peer: Peer, file: Path) -> float:
    """Largest difference of the first batch's vectors. Only there does the peer start from the zero state: it carries
    the state of each row into the next batch. It must not have run before.
    """
    peer.ask(f"first {file}")
    theirs = np.load(file)
    largest = 0.0
    for row, doc in zip(theirs, nlp.pipe(docs)):
        largest = max(largest, float(np.abs(row[: len(doc)] - doc._.elmo).max()))
        doc._.elmo = None
    return largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("original", "small", "mini"), default="original")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--sentences", type=int, default=512, help="in a measurement")
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--text", type=Path, help="sentences from this file, one a line, instead of generated ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="3 rounds of 96 sentences")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.sentences = 3, 96

    generate = args.text is None
    sentences = generated(args.sentences, args.seed) if generate else from_text(args.text, args.sentences)
    if not sentences:
        parser.error(f"{args.text} has no line of 5 to 60 tokens")
    tokens = sum(map(len, sentences))
    torch.set_num_threads(args.threads)
    folder = RUNS / "peer_speed" / args.size
    write_model(folder, options_of(args.size), args.seed, sentences)
    nlp = spacy.blank("en")
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "model.hdf5")}
    # without the word cache, since the rounds repeat the same sentences
    nlp.add_pipe("elmo", config={"model": {**files, "precision": "float32", "cached_words": 0}})
    docs = [Doc(nlp.vocab, words=words) for words in sentences]
    peer = Peer(peer_python(RUNS / "peer_venv"), folder, args.batch, args.threads)
    try:
        names = f"simple_elmo {peer.versions['simple_elmo']} (TensorFlow {peer.versions['tensorflow']})"
        share = 100 * distinct_share(sentences, args.batch)
        print(
            f"{args.size} size, float32, batch {args.batch}, {args.threads} threads each; ours: torch "
            f"{torch.__version__}, peer: {names}\n{len(sentences)} {'generated' if generate else args.text.name} "
            f"sentences, {tokens:,} tokens, mean {tokens / len(sentences):.1f}, {share:.0f} % of a batch's distinct"
        )
        largest = difference(nlp, docs[: args.batch], peer, folder / "first.npy")
        print(f"largest difference in the first batch, both from the zero state: {largest:.1e}\n", flush=True)
        measure(nlp, docs, peer, args.batch, args.rounds, tokens)
    finally:
        peer.close()


def measure(nlp: Language, docs: list[Doc], peer: Peer, batch: int, rounds: int, tokens: int) -> None:
    """Print a row a round and the medians. Load: the average before, cores taken by others meanwhile."""
    warm_up = min(len(docs), 2 * batch)
    run_ours(nlp, docs[:warm_up], batch)
    peer.ask(f"run {warm_up}")
    print("| round | ours, tokens/s | load before, others | peer, tokens/s | load before, others | ratio |")
    print("|---|---|---|---|---|---|")
    results: list[tuple[float, float]] = []
    quiet: list[tuple[float, float]] = []
    for number in range(1, rounds + 1):
        speeds: list[float] = []
        loads: list[Load] = []
        for ours in (True, False):
            time.sleep(PAUSE)
            meter = LoadMeter([peer.process.pid, os.getpid()])
            seconds = run_ours(nlp, docs, batch) if ours else peer.ask(f"run {len(docs)}")["seconds"]
            loads.append(meter.stop())
            speeds.append(tokens / seconds)
        results.append((speeds[0], speeds[1]))
        if not any(load.disturbed for load in loads):
            quiet.append(results[-1])
        cells = [f"{speeds[0]:,.0f}", loads[0], f"{speeds[1]:,.0f}", loads[1], f"{speeds[0] / speeds[1]:.2f}"]
        print(f"| {number} | {' | '.join(map(str, cells))} |", flush=True)
    _print_medians("median of all rounds", results)
    if 0 < len(quiet) < len(results):
        _print_medians(f"median of the {len(quiet)} undisturbed", quiet)
    elif not quiet:
        print("\nEvery round was disturbed: trust the ratio little and the figures less.", file=sys.stderr)


def _print_medians(name: str, results: list[tuple[float, float]]) -> None:
    ours, theirs = (statistics.median(column) for column in zip(*results))
    print(f"| {name} | {ours:,.0f} | | {theirs:,.0f} | | {statistics.median(a / b for a, b in results):.2f} |")


if __name__ == "__main__":
    main()
