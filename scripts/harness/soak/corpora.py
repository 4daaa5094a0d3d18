"""SIGKILL at random moments of `embed` into a folder of shards. The same command then ends in the same files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SENTENCES = 2_500
_SHARD = 8_000  # bytes of text
_LOCK = ".lock"  # has the number of a process


def killed_embeddings(times: int, workers: int, seed: int = 0) -> str:
    """Kill the command again and again, and compare the files after each kill and the command that goes on.

    times: number of kills. workers: processes that make shards. seed: of the moments.

    Returns what was there after the kills. Raises AssertionError if a file differs or is left over.
    """
    draws, found = random.Random(seed), list[int]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_text(folder / "text.txt")
        start = time.monotonic()
        assert _command(folder, "whole", workers).wait() == 0
        seconds = time.monotonic() - start
        expected = _contents(folder / "whole")
        n_shards = sum(file.startswith("shards") for file in expected)
        kills = 0
        while kills < times:
            out = f"out{kills}"
            process = _command(folder, out, workers)
            if not _wait_for_shards(folder / out, process, draws.randrange(n_shards)):
                continue  # it was faster
            time.sleep(draws.uniform(0, seconds / n_shards))
            process.send_signal(signal.SIGKILL)
            if process.wait() == 0:
                continue
            kills += 1
            found.append(len([*(folder / out / "shards").glob("part-*")]))
            assert _command(folder, out, workers).wait() == 0, "what a kill has left is in the way"
            assert _contents(folder / out) == expected, f"other files after a kill with {found[-1]} shards"
    there = f"{min(found)} to {max(found)} of {n_shards} shards were there"
    return f"{workers} worker{'s' * (workers > 1)}: {times} kills, {there}; all files are equal at the end"


def _wait_for_shards(folder: Path, process: subprocess.Popen[bytes], n: int) -> bool:
    """Wait until there are n shards. Returns whether the command still runs."""
    while process.poll() is None:
        if folder.exists() and len([*(folder / "shards").glob("part-*")]) >= n:
            return True
        time.sleep(0.01)
    return False


def _command(folder: Path, out: str, workers: int) -> subprocess.Popen[bytes]:
    options = ["--format", "parquet", "--workers", str(workers), "--shard-size", str(_SHARD), "--quiet"]
    command = [sys.executable, "-m", "spacy", "elmo", "embed", *options, "text.txt", out]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})


def _contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != _LOCK]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _write_text(path: Path) -> None:
    draws = random.Random(0)
    words = ["river", "bank", "money", "the", "of", "isn't", "lent", "boat", "house"]
    with path.open("w", encoding="utf8") as file:
        for number in range(_SENTENCES):
            file.write(f"{number} {' '.join(draws.choices(words, k=draws.randint(1, 12)))}.\n")
        file.write("\n")
    path.write_bytes(path.read_bytes() + b"not \xff UTF-8\n")
