"""Run the compiled loops, their tests and random calls, under AddressSanitizer and UBSan with each instruction set.

    python -m scripts.harness.sanitize --calls 10000

The random calls go through the functions by which the package calls the loops, from several threads. They have odd
sizes, no rows, unaligned views, NaN and infinity. Results of finite inputs are compared with torch's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import Generator, Tensor

import spacy_elmo
from spacy_elmo import kernels
from spacy_elmo.formats.options import BiLMOptions
from spacy_elmo.inference import Engine, lstm
from spacy_elmo.inference.engine import fill, new_layers
from spacy_elmo.modules import BiLM, LstmState
from spacy_elmo.modules.char_cnn import N_IDS, _convolve_and_pool, character_table, maxima
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, cell_backward, cell_forward
from spacy_elmo.pretraining.optimizers import AdagradRows, AdamRows
from spacy_elmo.pretraining.scan import window_scan
from spacy_elmo.pretraining.softmax import _to_probabilities
from spacy_elmo.pretraining.workspace import Workspace

ROOT = Path(__file__).parents[2]
TILES = ROOT / "tests" / "kernels" / "emulated_tiles.h"
TESTS = ["tests/kernels", "tests/inference/test_lstm.py"]
TESTS += [f"tests/pretraining/test_{name}.py" for name in ("lstm_amx", "scan", "softmax")]
TESTS += [f"tests/modules/test_{name}.py" for name in ("lstm_cell", "loops", "char_cnn")]
# they build libraries of their own, or load libraries that were not built
SKIPPED = ("test_build.py", "test_loading.py")
# -O1: each access that the source has is made and checked. -fno-sanitize-recover: a finding ends the process.
FLAGS = [
    *("-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    *("-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-fvisibility=hidden", "-mprefer-vector-width=512"),
]
# what common.h compiles for three processors is compiled for the named one only. "newest" has the loops that the
# machine selects itself, and AMX in plain memory
CLONES = "-Dtarget_clones(newest,older,any)=target({})"
BUILDS: dict[str, list[str]] = {
    "newest": ["-include", str(TILES)],
    "x86-64-v3": [CLONES.format("older")],
    "x86-64": [CLONES.format('"arch=x86-64"')],
}


def build(name: str) -> Path:
    """Return a folder with a copy of the package whose loops are sanitized. Raises CalledProcessError."""
    copy = ROOT / "runs" / "sanitize" / name
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(ROOT / "spacy_elmo", copy / "spacy_elmo", ignore=ignored)
    target = copy / "spacy_elmo" / "kernels"
    sources = sorted(str(path) for path in target.glob("*.c"))
    fingerprint = f'-DFINGERPRINT="{kernels.fingerprint(target)}"'
    library = str(target / f"_loops{EXTENSION_SUFFIXES[0]}")
    subprocess.run(["gcc", *FLAGS, fingerprint, *BUILDS[name], *sources, "-o", library, "-lm"], check=True)
    return copy


def environment(package: Path) -> dict[str, str]:
    """Return the environment in which Python imports the copy in a folder."""
    names = ("libasan.so", "libubsan.so")
    found = [subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip() for name in names]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python and torch free little at their end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that each object has its own redzones
        "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)]),
    }


# Random sizes and arrays

THREAD = (
    threading.local()
)  # odd: whether it has drawn a value of ODD; in_torch: whether it calls the loops' versions in torch
ODD = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e38, -1e38, 1e-42, 88.0, -88.0, 65504.0)


def integer(g: Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high + 1, (), generator=g))


def chance(g: Generator, share: float) -> bool:
    return bool(torch.rand((), generator=g) < share)


def choice(g: Generator, *values: float | None) -> float | None:
    return values[integer(g, 0, len(values) - 1)]


def size(g: Generator, highest: int) -> int:
    """Draw a size of 0 or more: often 0 or 1, else any up to `highest`."""
    return integer(g, 0, 1) if chance(g, 0.2) else integer(g, 1, highest)


def unaligned(g: Generator, array: Tensor) -> Tensor:
    """Return a copy that begins anywhere in its memory, and ends where the memory ends."""
    skipped = integer(g, 0, 17)
    return array.new_empty(array.numel() + skipped)[skipped:].view(array.shape).copy_(array)


def normal(g: Generator, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw numbers; in one array of twenty some are NaN, infinite, denormal or huge."""
    array = torch.randn(shape, generator=g) * scale
    if array.numel() and chance(g, 0.05):
        THREAD.odd = True
        for _ in range(3):
            array.view(-1)[integer(g, 0, array.numel() - 1)] = ODD[integer(g, 0, len(ODD) - 1)]
    return unaligned(g, array.to(dtype))


# One random call of each loop


def run_cell(g: Generator) -> list[Tensor]:
    """A step of the LSTM cell and its gradients."""
    batch, dim = size(g, 9), integer(g, 1, 140)
    real = torch.bfloat16 if chance(g, 0.5) else torch.float32
    sums, bias, cell_in = normal(g, batch, 4 * dim, dtype=real), normal(g, 4 * dim), normal(g, batch, dim)
    keep = normal(g, batch, 1) if chance(g, 0.5) else None
    d_out, d_cell, clip = normal(g, batch, dim, dtype=real), normal(g, batch, dim), choice(g, None, 0.3, 3.0)
    gates, cell, out = torch.empty_like(sums), torch.empty_like(cell_in), torch.empty_like(d_out)
    cell_forward(sums, gates, bias, cell_in, keep, cell, out, clip)
    d_gates = gates.clone()
    d_cell = cell_backward(d_gates, cell_in, keep, cell, d_out, d_cell, clip)
    return [gates, cell, out, d_gates, d_cell]


def convolve(g: Generator) -> list[Tensor]:
    """Convolutions of characters, with the gradient of the table or without it."""
    words, positions = size(g, 9), integer(g, 1, 60)
    filters = tuple((integer(g, 1, min(9, positions)), integer(g, 1, 140)) for _ in range(integer(g, 1, 3)))
    ids = unaligned(g, torch.randint(0, N_IDS, (words, positions), generator=g))
    embedding = normal(g, N_IDS, integer(g, 1, 5))
    embedding[0] = 0
    weights = [(normal(g, n, embedding.shape[1], width), normal(g, n)) for width, n in filters]
    library = kernels.load()
    lengths = [torch.randint(width, positions + 1, (words,), generator=g) for width, _ in filters]
    if library is None:
        pooled = torch.empty(words, sum(n for _, n in filters))
        for row in range(words):
            characters = [embedding[ids[row, : length[row]]][None] for length in lengths]
            parts = [_convolve_and_pool(x, weight, bias) for x, (weight, bias) in zip(characters, weights)]
            pooled[row] = torch.cat(parts, 1)
        return [pooled]
    tables = [unaligned(g, character_table(embedding, weight)) for weight, _ in weights]
    short, ints = unaligned(g, ids.short()), [unaligned(g, length.int()) for length in lengths]
    with torch.no_grad():
        out = maxima(tables, short, ints, library)
    for table in tables:
        table.requires_grad_()
    again = maxima(tables, short, ints, library)
    again.backward(normal(g, *again.shape))
    torch.testing.assert_close(again.detach(), out, rtol=0, atol=0, equal_nan=True)
    return [out + torch.cat([bias for _, bias in weights])]


def run_softmax(g: Generator) -> list[Tensor]:
    """A block of a sampled softmax."""
    rows, words = size(g, 9), integer(g, 1, 200)
    real = torch.bfloat16 if chance(g, 0.5) else torch.float32
    logits, offset, targets = normal(g, rows, words, dtype=real), normal(g, words), normal(g, rows)
    hits = unaligned(g, torch.randint(-1, words, (rows,), generator=g, dtype=torch.int32))
    losses, d_target = torch.empty_like(targets), torch.empty_like(targets)
    _to_probabilities(logits, offset, targets, hits, losses, d_target)
    return [logits, losses, d_target]


def update_rows(g: Generator) -> list[Tensor]:
    """Adam or Adagrad on some rows of a table."""
    rows, width = integer(g, 1, 30), integer(g, 1, 70)
    table = normal(g, rows, width)
    chosen = torch.randperm(rows, generator=g)[: integer(g, 0, rows)]
    d_rows, step = normal(g, len(chosen), width), integer(g, 1, 5)
    adam = AdamRows(table, 0.9, 0.999) if chance(g, 0.5) else AdagradRows(table, 1.0)
    adam.update(unaligned(g, chosen), d_rows, 0.01, step)
    return [table, *adam.state().values()]


def scan(g: Generator) -> list[Tensor]:
    """A layer over a window of steps with its gradients: on AMX if the sizes are multiples of 64."""
    steps, batch, n_directions = integer(g, 1, 4), integer(g, 1, 40), integer(g, 1, 2)
    unit = 64 if chance(g, 0.7) else 8
    dim, n_in, width = unit * integer(g, 1, 2), unit * integer(g, 1, 2), unit * integer(g, 1, 2)
    has_projection = unit == 64 or chance(g, 0.5)
    width = width if has_projection else dim
    shapes = [(steps, batch, n_in), (n_in, 4 * dim), (width, 4 * dim), (4 * dim,), (dim, width), (batch, width)]
    arrays = [normal(g, n_directions, *shape, scale=0.1).requires_grad_() for shape in (*shapes, (batch, dim))]
    x, w_x, w_h, bias, w_p, h0, c0 = arrays
    keep = (torch.rand(steps, batch, 1, generator=g) > 0.2).float()
    clips = Clips(choice(g, None, 0.5, 3.0), choice(g, None, 0.5, 3.0))
    low = torch.bfloat16 if has_projection and chance(g, 0.7) else torch.float32
    weights = LayerWeights(w_x, w_h, bias, w_p if has_projection else None)
    state = LstmState(h0, c0)
    h, c = window_scan(x, weights, state, clips, keep=keep, matmul_dtype=low, workspace=Workspace())
    (h * normal(g, *h.shape)).sum().add((c * normal(g, *c.shape)).sum()).backward()
    return [h.detach(), c.detach()]  # what is near a bound falls on either side, and so do its gradients


SIZES = ((64, 64), (128, 64), (96, 32), (80, 48), (40, 24), (192, 128))  # dim and projection_dim of engines
ALL = lstm.KINDS
LOCK = threading.Lock()
ENGINES: dict[tuple[object, ...], Engine] = {}


def copy_rows(g: Generator) -> list[Tensor]:
    sentences, width, boundary = size(g, 6), integer(g, 1, 40), integer(g, 0, 1)
    options = BiLMOptions(1, ((1, 1),), 0, "relu", 50, width, width, 1, None, None, False)
    tokens = np.array([size(g, 7) for _ in range(sentences)], np.int64)
    layers, lengths = new_layers(options, tokens), tokens + 2 * boundary
    for array in layers:
        array[:] = 0
    rows = normal(g, integer(g, 1, 20), width)
    places = torch.randint(0, len(rows), (int(lengths.sum()),), generator=g).numpy()
    for d in range(2):
        fill(layers, [(rows, places), (rows, places[::-1].copy())], lengths, boundary, d)
    return [torch.from_numpy(array) for array in layers]


def run_engine(g: Generator) -> list[Tensor]:
    """Sentences through the engine, from the zero state or from another, with one kind of compiled call."""
    engine = _engine(integer(g, 0, len(SIZES) - 1), integer(g, 0, len(ALL)))
    words = [f"w{k}" * (1 + k % 20) for k in range(30)] + ["", "\x00", "東京", "🙂" * 40]
    lengths = [size(g, 12) for _ in range(size(g, 40))]
    sentences = [[words[integer(g, 0, len(words) - 1)] for _ in range(n)] for n in lengths]
    if not chance(g, 0.4) or 0 in lengths or not lengths:
        return [torch.from_numpy(array) for array in engine.run(sentences)]
    options, rows = engine.options, len(sentences)
    shapes = ((options.n_layers, 2, rows, width) for width in (options.projection_dim, options.dim))
    layers, ends = engine.run_from(sentences, LstmState(*(normal(g, *shape) for shape in shapes)))
    return [*map(torch.from_numpy, layers), *ends]


def _engine(number: int, kind: int) -> Engine:
    """Return an engine of some size, with one kind of compiled call or with none, made once."""
    key = (number, kind, kernels.load() is None)
    with LOCK:
        if key not in ENGINES:
            dim, width = SIZES[number]
            options = BiLMOptions(4, ((1, 4), (2, 8), (7, 70)), 1, "relu", 50, dim, width, 2, 3.0, 3.0, True)
            bilm = BiLM(options)
            bilm.reset_parameters(torch.Generator().manual_seed(number))
            dtype = torch.float32 if kind == len(ALL) else ALL[kind].operands
            with mock.patch.object(lstm, "KINDS", ALL[kind : kind + 1]):
                ENGINES[key] = Engine(bilm, dtype, cached_words=10)
        return ENGINES[key]


CALLS: tuple[Callable[[torch.Generator], list[torch.Tensor]], ...] = (
    *(run_cell, convolve, run_softmax, update_rows, copy_rows),
    *(run_engine, scan),
)
THREADS = 3


def _switch() -> None:
    """Let a thread call the loops' versions in torch: those that run if there is no library."""
    library = kernels.load()
    assert library is not None, "there are no compiled loops"
    kernels.load = lambda: None if getattr(THREAD, "in_torch", False) else library  # type: ignore[assignment]


def one_call(seed: int) -> str:
    """Call a loop that the seed selects, compare the results with torch's, and return the name of the call."""
    make = CALLS[seed % len(CALLS)]
    THREAD.odd = False
    compiled = make(torch.Generator().manual_seed(seed))
    THREAD.in_torch = True
    try:
        expected = make(torch.Generator().manual_seed(seed))
    finally:
        THREAD.in_torch = False
    # if odd: NaN, infinity, or numbers whose rounding decides; the tests say what comes of them
    for got, wanted in zip(compiled, expected, strict=True) if not THREAD.odd else ():
        assert got.shape == wanted.shape, (make.__name__, seed, got.shape, wanted.shape)
        difference = float((got.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1.0))
        bound = 0.1 if make in (run_engine, scan) else 0.02  # several layers in bfloat16, and one rounding to bfloat16
        assert difference <= bound, (make.__name__, seed, difference)
    return make.__name__


def main() -> None:
    """Run all builds. The exit code is 1 if a run of any of them fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000, help="random calls with each instruction set")
    parser.add_argument("--only", choices=BUILDS, help="one instruction set")
    parser.add_argument("--in-package", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.in_package:
        assert Path(spacy_elmo.__file__).is_relative_to(args.in_package), spacy_elmo.__file__
        _switch()
        torch.set_num_threads(2)
        with ThreadPoolExecutor(THREADS) as pool:
            counts = Counter(pool.map(one_call, range(args.calls)))
        print(counts.total(), "calls, nothing found:", dict(counts))
        return
    failed = []
    for name in [args.only] if args.only else BUILDS:
        package = build(name)
        calls = ["-m", "scripts.harness.sanitize", "--calls", str(args.calls), "--in-package", str(package)]
        tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(ROOT)]
        tests += ["-o", f"pythonpath={package} {ROOT / 'tests' / 'helpers'}"]
        tests += [f"--ignore={ROOT / 'tests' / 'kernels' / skipped}" for skipped in SKIPPED]
        tests += [str(ROOT / path) for path in TESTS]
        for title, command in (("tests", tests), ("random calls", calls)):
            start = time.monotonic()
            code = subprocess.run([sys.executable, *command], cwd=package, env=environment(package)).returncode
            print(f"{name}, {title}: exit code {code}, {time.monotonic() - start:.0f} s", flush=True)
            failed += [f"{name}, {title}"] if code else []
    if failed:
        sys.exit(f"failed: {'; '.join(failed)}")


if __name__ == "__main__":
    main()
