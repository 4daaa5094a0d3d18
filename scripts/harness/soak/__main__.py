"""Endurance. Each part prints one line of figures, and the exit code is 1 if one failed.

python -m scripts.harness.soak                       # all, at full size: hours
python -m scripts.harness.soak --size 0.02           # a fiftieth of it
python -m scripts.harness.soak --only kills --size 1
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import torch

from .corpora import killed_embeddings
from .cycles import load_and_drop
from .killed_worker import killed_workers
from .kills import kill
from .many_docs import many_docs
from .original_size import original_size
from .threads import shared_pipeline
from .writers import WRITERS


def _kills(size: float) -> Iterator[str]:
    times = max(2, round(20 * size))
    torch.set_num_threads(1)
    for name in WRITERS:
        yield kill(name, times)


def _corpora(size: float) -> Iterator[str]:
    yield killed_embeddings(max(2, round(20 * size)), workers=1)
    yield killed_embeddings(max(2, round(10 * size)), workers=2)


PARTS: dict[str, Callable[[float], Iterator[str]]] = {
    "kills": _kills,
    "corpora": _corpora,
    "docs": lambda size: iter([many_docs(max(2_000, round(300_000 * size)))]),
    "threads": lambda size: iter([shared_pipeline(max(10.0, 600 * size))]),
    "worker": lambda size: iter([killed_workers()]),
    "cycles": lambda size: iter([load_and_drop(max(50, round(1_000 * size)))]),
    "original": lambda size: iter([original_size()]),
}


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be given several times; default: all")
    arguments = parser.parse_args()
    failed = []
    for name in arguments.only or PARTS:
        start = time.monotonic()
        try:
            for line in PARTS[name](arguments.size):
                print(f"{name}: {line} ({time.monotonic() - start:.0f} s)", flush=True)
        except AssertionError as error:
            print(f"{name}: FAILED: {error}", flush=True)
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
