"""Endurance. Each part prints one line of figures, and the exit code is 1 if one failed (Linux).

    python -m scripts.harness.soak                       # all, at full size: hours
    python -m scripts.harness.soak --size 0.02           # a fiftieth of it
    python -m scripts.harness.soak --only pretrain --size 1

embed, pretrain: SIGKILL at random moments of the command. The same command then goes on, and must end in the files of
one that was not killed. docs: a long stream of short docs of all planes of Unicode in one process. Its memory must stay
flat, and vectors must not depend on the batch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from benchmarks.memory import resident_mb
from benchmarks.same_bits import run_digests

ROOT = Path(__file__).parents[2]
SENTENCES, SHARD = 2_500, 8_000  # of the corpus, and bytes of text of a shard
PRETRAIN = """paths.heldout=null corpus.heldout_share=0.1 corpus.shuffle_block=32 vocabulary.size=100 bilm.lstm.dim=16
bilm.lstm.projection_dim=8 bilm.char_cnn.embedding.dim=4 bilm.char_cnn.filters=[[1,4],[2,8]] training.streams=4
training.steps=5 training.accumulate=2 training.total_tokens=12800 training.dropout=0.1 training.average_share=0.1
training.workers=1 training.precision=float32 training.softmax.negatives=20 training.schedule.warmup_steps=10
evaluation.every=40 evaluation.checkpoint_every=4 evaluation.sentences=20"""  # 320 updates
ZONE = 1000  # docs between two frees of spaCy's vocabulary
WARM = 30_000  # docs until caches are full and what was freed is used again


def killed(command: list[str], folder: Path, contents: Callable[[Path], dict[str, str]], times: int) -> str:
    """Kill a command again and again, let it go on, and compare its files with those of one that was not killed.

    command: in which OUT stands for the folder that it writes. contents: what its files hold. Returns what was there
    after the kills.
    """

    def start(out: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        arguments = [sys.executable, "-m", "spacy", "elmo", *(str(out) if part == "OUT" else part for part in command)]
        return subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, env=environment)

    random, found, out = Random(0), list[int](), folder / "out"
    begin = time.monotonic()
    assert start(folder / "whole").wait() == 0
    seconds, expected = time.monotonic() - begin, contents(folder / "whole")
    while len(found) < times:
        if random.random() < 0.5:  # else it goes on in what the kill before has left
            shutil.rmtree(out, ignore_errors=True)
        process, n = start(out), random.randrange(len(expected))
        while process.poll() is None and len(files_in(out)) < n:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 0.3 * seconds))
        process.send_signal(signal.SIGKILL)
        finished = process.wait() == 0  # it was faster
        found += [] if finished else [len(files_in(out))]
        if finished or random.random() < 0.5 or len(found) == times:
            assert finished or start(out).wait() == 0, "what a kill has left is in the way"
            assert contents(out) == expected, "other files than without kills"
            shutil.rmtree(out)
    return f"{times} kills, {min(found)} to {max(found)} of {len(expected)} files were there; all are equal at the end"


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files of a folder and its folders by their names."""
    return {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}


def bytes_in(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files_in(folder).items()}


def run_in(folder: Path) -> dict[str, str]:
    """Return what the files of a pretraining run hold. The card and the checkpoints are there: they have the hours."""
    return dict.fromkeys(files_in(folder), "there") | run_digests(folder)


def embed(size: float) -> Iterator[str]:
    random = Random(0)
    words = ["river", "bank", "money", "the", "of", "isn't", "lent", "boat", "house"]
    for workers, times in ((1, 20), (2, 10)):
        with tempfile.TemporaryDirectory() as name:
            lines = [f"{k} {' '.join(random.choices(words, k=random.randint(1, 12)))}.\n" for k in range(SENTENCES)]
            Path(name, "text.txt").write_text("".join(lines), encoding="utf8")
            options = ["--format", "parquet", "--workers", str(workers), "--shard-size", str(SHARD), "--quiet"]
            result = killed(["embed", *options, "text.txt", "OUT"], Path(name), bytes_in, max(2, round(times * size)))
            yield f"{workers} process{'es' * (workers > 1)}: {result}"


def pretrain(size: float) -> Iterator[str]:
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        lines = [" ".join(f"word{k % 150}" for k in random.zipf(1.3, random.integers(3, 12))) for _ in range(300)]
        Path(name, "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
        settings = [f"--{setting}" for setting in PRETRAIN.split()]
        config = str(ROOT / "configs" / "pretrain.cfg")
        command = ["pretrain", config, "OUT", "--paths.train", "text.txt", *settings]
        yield killed(command, Path(name), run_in, max(2, round(20 * size)))


def docs(size: float) -> Iterator[str]:
    """Embed docs, and compare some with the same docs one by one.

    spaCy's hash tables grow with the number of different words that a process has seen, also with a memory zone. So the
    same docs go through a tokenizer alone in a process of its own, and what that one grows by does not count.
    """
    n_docs = max(200, round(300_000 * size))
    command = [sys.executable, "-m", "scripts.harness.soak", "--tokenizer-alone", str(n_docs)]
    alone = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    sampler, memory = Random(1), [0.0, 0.0]
    tokens, n_samples, largest = 0, 0, 0.0
    for doc in stream(nlp, n_docs, memory):
        tokens += len(doc)
        if sampler.random() < 200 / n_docs:
            again = nlp(doc.text)
            largest = max(largest, float(np.abs(again._.elmo_layers - doc._.elmo_layers).max(initial=0.0)))
            n_samples += 1
    figures = (
        f"{n_docs:,} docs, {tokens:,} tokens: {memory[0]:.0f} MB at first, {memory[1]:.0f} MB at the end (spaCy alone "
        f"{alone[0]:.0f} and {alone[1]:.0f} MB); {n_samples} samples, largest difference {largest:.1e}"
    )
    assert largest <= 1e-5, figures
    assert memory[1] <= 1.05 * memory[0] + max(0.0, alone[1] - alone[0]), figures
    yield figures


def stream(nlp: Language, n_docs: int, memory: list[float]) -> Iterator[Doc]:
    """Yield the docs of random texts, in memory zones. memory: receives MB after the first docs and at the end."""
    random = Random(0)
    texts = (text(random) for _ in range(n_docs))
    done = 0
    while chunk := list(islice(texts, ZONE)):
        with nlp.memory_zone():
            yield from nlp.pipe(chunk)
        done += len(chunk)
        memory[1] = resident_mb()
        if done <= max(ZONE, min(WARM, n_docs // 2)):
            memory[0] = max(memory)


def text(random: Random) -> str:
    """Draw a text of 0 to 10 words of 1 to 12 characters, half of them from the first blocks of Unicode."""

    def character() -> str:
        code = random.randrange(0x3000 if random.random() < 0.5 else 0x110000)
        return character() if 0xD800 <= code <= 0xDFFF else chr(code)

    words = ("".join(character() for _ in range(random.randint(1, 12))) for _ in range(random.randint(0, 10)))
    return " ".join(words)


PARTS: dict[str, Callable[[float], Iterator[str]]] = {"embed": embed, "pretrain": pretrain, "docs": docs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--only", choices=PARTS, help="else all")
    parser.add_argument("--tokenizer-alone", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.tokenizer_alone:
        memory = [0.0, 0.0]
        for _ in stream(spacy.blank("en"), args.tokenizer_alone, memory):
            pass
        print(json.dumps(memory))
        return
    for name in [args.only] if args.only else PARTS:
        start = time.monotonic()
        try:
            for line in PARTS[name](args.size):
                print(f"{name}: {line} ({time.monotonic() - start:.0f} s)", flush=True)
        except AssertionError as error:
            sys.exit(f"{name}: FAILED: {error}")


if __name__ == "__main__":
    main()
