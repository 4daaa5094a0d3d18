"""Random calls of all compiled loops, from several threads, through the functions that the package calls them by.

python -m scripts.harness.sanitize.random_calls CALLS SEED PACKAGE
"""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

import spacy_elmo
from spacy_elmo import kernels

from .draws import drawn
from .inference_calls import copy_rows, run_engine
from .training_calls import convolve, run_cell, run_softmax, scan, update_rows

CALLS: tuple[Callable[[torch.Generator], list[torch.Tensor]], ...] = (
    *(run_cell, convolve, run_softmax, update_rows, copy_rows),
    *(run_engine, scan),
)
_ALONE = threading.local()
_THREADS = 3


def _switch() -> None:
    """Let a thread call the loops' versions in torch: those that run if there is no library."""
    library = kernels.load()
    assert library is not None, "there are no compiled loops"
    kernels.load = lambda: None if getattr(_ALONE, "in_torch", False) else library  # type: ignore[assignment]


def one_call(seed: int) -> str:
    """Call a loop that the seed selects, and compare the results with torch's.

    Returns the name of the call. Raises AssertionError if the results differ.
    """
    make = CALLS[seed % len(CALLS)]
    drawn.odd = False
    compiled = make(torch.Generator().manual_seed(seed))
    _ALONE.in_torch = True
    try:
        expected = make(torch.Generator().manual_seed(seed))
    finally:
        _ALONE.in_torch = False
    assert len(compiled) == len(expected)
    if drawn.odd:
        return make.__name__  # NaN, infinity, or numbers whose rounding decides: the tests say what comes of them
    for got, wanted in zip(compiled, expected):
        assert got.shape == wanted.shape, (make.__name__, seed, got.shape, wanted.shape)
        difference = float((got.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1.0))
        bound = 0.1 if make in (run_engine, scan) else 0.02  # several layers in bfloat16, and one rounding to bfloat16
        assert difference <= bound, (make.__name__, seed, difference)
    return make.__name__


def main(calls: int, seed: int, package: Path) -> None:
    """Make calls. Raises AssertionError if the package was not imported from `package`, or if a result is wrong."""
    assert Path(spacy_elmo.__file__).is_relative_to(package), spacy_elmo.__file__
    _switch()
    library = kernels.load()
    kinds = {"AMX": kernels.has_amx, "AVX-512": kernels.has_avx512, "bfloat16": kernels.has_avx512_bf16}
    print("loops:", {name: has(library) for name, has in kinds.items()}, flush=True)
    torch.set_num_threads(2)
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(_THREADS) as pool:
        for name in pool.map(one_call, range(seed, seed + calls), chunksize=1):
            counts[name] += 1
            if math.log10(counts.total()).is_integer():
                print(counts.total(), dict(counts), flush=True)
    print(counts.total(), "calls, nothing found:", dict(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
