"""Reads damaged files for some minutes, and stores what crashes, hangs, or raises what is not this package's.

python -m scripts.harness.fuzz --minutes 3                     # all targets, 3 minutes each
python -m scripts.harness.fuzz --target weights --seed 123     # one input again
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from pathlib import Path

import torch

from .pool import Finding, Target, run
from .targets import TARGETS


def fuzz(name: str, target: Target, minutes: float, workers: int, first: int, folder: Path) -> Counter[str]:
    """Run one target, and print each kind of finding once. Returns how often each kind came.

    What a process of its own has read or refused is printed too, but not in what is returned.
    """
    counts: Counter[str] = Counter()
    contained: Counter[str] = Counter()
    end, n_inputs = time.monotonic() + 60 * minutes, 0
    for finding in run(target, itertools.count(first), workers, folder / name):
        n_inputs += 1
        if finding is not None:
            kinds = contained if finding.contained else counts
            kinds[finding.kind] += 1
            if kinds[finding.kind] == 1:
                _print(name, finding)
            elif kinds[finding.kind] > 3:
                _delete(finding)
        if time.monotonic() > end:
            break
    elsewhere = f"; contained by a process of its own: {dict(contained)}" if contained else ""
    print(f"{name}: {n_inputs:,} inputs, {counts.total()} findings of {len(counts)} kinds{elsewhere}", flush=True)
    return counts


def _print(name: str, finding: Finding) -> None:
    last = finding.detail.strip().splitlines()[-1][:200]
    kind = f"{finding.kind}, contained" if finding.contained else finding.kind
    print(f"{name}: seed {finding.seed}: {kind}: {last!a} ({finding.folder})", flush=True)


def _delete(finding: Finding) -> None:
    """Delete the files: three of a kind are enough."""
    for path in sorted(finding.folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    finding.folder.rmdir()


def main() -> None:
    """Run the targets. The exit code is 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0, help="for each target")
    parser.add_argument("--target", choices=TARGETS, action="append", help="may be given several times; default: all")
    parser.add_argument("--workers", type=int, default=2, help="child processes")
    parser.add_argument("--seed", type=int, help="read the input of this seed in this process, and do nothing else")
    parser.add_argument("--first", type=int, help="first seed; default: the clock's")
    parser.add_argument("--folder", type=Path, default=Path("runs/fuzz"), help="for inputs with findings")
    arguments = parser.parse_args()
    names = arguments.target or list(TARGETS)
    torch.set_num_threads(1)  # a process with threads can't be forked safely
    if arguments.seed is not None:
        _once(TARGETS[names[0]](), arguments.seed, arguments.folder / names[0] / f"again-{arguments.seed}")
        return
    first = int(time.time()) * 1000 if arguments.first is None else arguments.first
    counts = [
        fuzz(name, TARGETS[name](), arguments.minutes, arguments.workers, first, arguments.folder) for name in names
    ]
    if any(counts):
        sys.exit(1)


def _once(target: Target, seed: int, folder: Path) -> None:
    from random import Random

    folder.mkdir(parents=True)
    target.make(folder, Random(seed))
    print(f"{folder}: made", flush=True)
    target.load(folder)


if __name__ == "__main__":
    main()
