"""Tokens per second beside other programs, and how close to the limit of the machine, all in one run.

Ours: the engine itself, and `nlp.pipe` in a pipeline of `elmo` alone on docs that have their tokens, in each
precision. Peers: simple_elmo (bilm-tf's network under TensorFlow) and AllenNLP with the same random weights, and
RoBERTa-base in spacy-curated-transformers. They run in float32, each in an environment of its own under runs/, which
the first run makes. All run in turns on the same sentences, with a pause between them. Then the limit is measured:
large matrix multiplications alone (operations.py, matrix_rates.py). Loading is not measured. Tokens are words, without
padding and boundaries.

    python -m benchmarks.speed.tokens_per_second
    python -m benchmarks.speed.tokens_per_second --quick    # one round on few sentences: about two minutes
    python -m benchmarks.speed.tokens_per_second --sizes original --batches 1,32 --peers none

Other processes' load is recorded with every figure. Rounds in which they used more than a tenth of a core are marked,
and left out if there are other rounds. Peers are measured up to batch 128 (TensorFlow needs 6 GB there), RoBERTa at the
first size alone.
"""

import json
import os
import platform
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import torch

from spacy_elmo import kernels
from spacy_elmo.inference.lstm import KINDS as KINDS_OF_LSTM

from ..common.arguments import SIZES, add_common, count, counts, output, parser_of, some_of, text_file
from ..common.english_like import distinct_share, from_text, generated
from .peers.environments import KINDS, PeerError, environment
from .plot import plot
from .rounds import Plan, SizeRun
from .table import Cell, markdown, ours_first, row

FULL = Plan(rounds=3, sentences=512, least=2.0, pause=1.0, warm_up=64, matrices=1.0, roberta=(1, 32, 128))
QUICK = Plan(rounds=1, sentences=32, least=0.2, pause=0.1, warm_up=8, matrices=0.3, roberta=(32,))
BATCHES = [1, 32, 128, 512]
QUICK_SIZES, QUICK_BATCHES = ["original"], [1, 32]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--quick", action="store_true", help="one round, original size, batch 1 and 32")
    parser.add_argument("--sizes", type=some_of(SIZES), metavar="A,B", help="of the network (default: all)")
    parser.add_argument("--batches", type=counts, metavar="N,N", help="sentences of a batch (default: 1,32,128,512)")
    add_common(parser, "precisions", "threads")
    parser.add_argument("--rounds", type=count, help="measurements of each side (default: 3)")
    parser.add_argument("--sentences", type=count, help="of a measurement; an eighth of them at batch 1 (default: 512)")
    parser.add_argument("--text", type=text_file, help="file of sentences, one a line (default: generated)")
    parser.add_argument("--peers", type=some_of((*KINDS, "none")), default=list(KINDS), metavar="A,B", help="or none")
    parser.add_argument("--json", type=output(".json"), help="write all figures to this file")
    parser.add_argument("--plot", type=output(".png"), help="write tokens/s by batch to this .png")
    args = parser.parse_args()
    sizes, batches = (QUICK_SIZES, QUICK_BATCHES) if args.quick else (list(SIZES), BATCHES)
    args.sizes, args.batches = args.sizes or sizes, args.batches or batches
    given = {name: value for name in ("rounds", "sentences") if (value := getattr(args, name))}
    plan = replace(QUICK if args.quick else FULL, **given)
    n = max(plan.count(batch) for batch in args.batches)
    sentences = generated(n, 0) if args.text is None else from_text(args.text, n)
    if len(sentences) < n:
        parser.error(f"{args.text} has {len(sentences)} lines of 5 to 60 tokens, not {n}")
    torch.set_num_threads(args.threads)
    print(f"{machine(args.threads)}\n{described(sentences)}\n", flush=True)
    peers = [name for name in args.peers if name != "none" and installed(name)]
    cells: list[Cell] = []
    notes: dict[str, list[str]] = {}
    try:
        for size in args.sizes:
            names = [name for name in peers if KINDS[name].elmo or size == args.sizes[0]]
            with SizeRun(size, sentences, names, args.precisions, max(args.batches), args.threads, plan) as run:
                found = [run.cell(batch) for batch in args.batches]
            cells, notes[size] = cells + found, run.notes
            rows = [row(cell, side) for cell in found for side in ours_first(cell)]
            print(f"### {size} size", markdown(rows), "\n".join(run.notes), sep="\n\n", end="\n\n", flush=True)
    finally:
        if args.json and cells:
            report = {"machine": machine(args.threads), "plan": asdict(plan), "notes": notes}
            args.json.write_text(json.dumps(report | {"cells": [_plain(cell) for cell in cells]}, indent=1) + "\n")
        if args.plot and cells:
            plot(cells, args.plot)


def installed(name: str) -> bool:
    """Whether the peer's environment is there or could be made; says why not."""
    try:
        environment(name)
    except PeerError as error:
        print(f"{name} is left out: {error}\n", flush=True)
        return False
    return True


def machine(threads: int) -> str:
    """In words."""
    library = kernels.load()
    loops = "none" if library is None else ", ".join(kind.name for kind in KINDS_OF_LSTM if kind.has(library)) or "cell"
    load = f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "?"
    return (
        f"{platform.machine()}, {os.cpu_count()} processors, {torch.backends.cpu.get_cpu_capability()}, torch "
        f"{torch.__version__}, spaCy {version('spacy')}, compiled loops: {loops}, {threads} threads each, load {load}"
    )


def described(sentences: list[list[str]]) -> str:
    """In words."""
    tokens, share = sum(map(len, sentences)), 100 * distinct_share(sentences, 32)
    mean = tokens / len(sentences)
    return f"{len(sentences)} sentences, {tokens:,} tokens, mean {mean:.1f}, {share:.0f} % of 32 sentences' distinct"


def _plain(cell: Cell) -> dict[str, Any]:
    sides = {f"{side.kind} {side.precision}": rounds for side, rounds in cell.sides.items()}
    series = {"sides": sides, "limits": cell.limits, "vectors": cell.vectors}
    found: dict[str, Any] = {"size": cell.size, "batch": cell.batch}
    for name, parts in series.items():
        found[name] = {key: [{"rate": m.rate, **m.load._asdict()} for m in rounds] for key, rounds in parts.items()}
    return found | {"rows": [row(cell, side) for side in ours_first(cell)]}


if __name__ == "__main__":
    main()
