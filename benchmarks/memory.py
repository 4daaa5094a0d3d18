"""Memory while a process embeds, in MB of 10^6 bytes (Linux).

    python -m benchmarks.memory peaks --size original --batch 128
    python -m benchmarks.memory stream --plot runs/memory/stream.png
    python -m benchmarks.memory corpus --tokens 10000000

peaks: above what the imports occupy. A fresh process for each precision, and for the engine and nlp.pipe, imports
spaCy, torch and spacy_elmo. Then it loads random weights and runs four batches of different sentences.
stream: a pipeline of the embedded biLM alone reads sentences that are drawn at random from 20,000. Imports included.
corpus: `elmo embed` and its worker together, to Parquet in float16, which takes half a gigabyte of disk for a million
tokens. A page that several processes hold counts for each. A row is the highest memory in a tenth of the shards.
"""

import argparse
import gc
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import spacy
import torch
from spacy.tokens import Doc

from spacy_elmo.modules import load_bilm

from . import common

BATCHES = 4
COLUMNS = ("what", "precision", "weights", "imports", "above them: peak of loading", "loaded", "peak of running")
POOL = 20_000
SHARD = 1_000_000
PAUSE = 0.1  # seconds from one reading of the command's memory to the next


def resident_mb(peak: bool = False, process: int | str = "self") -> float:
    """Return the memory of a process: now, or the most since reset_peak. Raises OSError if there is no such process."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(name)), 0.0)


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def peaks(args: argparse.Namespace) -> None:
    folder = common.RUNS / "memory" / args.size
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "model.hdf5")}
    if args.child:  # the engine or nlp.pipe in this process
        sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
        (precision,) = args.precisions
        reset_peak()
        imported = resident_mb()
        if args.child == "engine":
            seconds = common.engine_seconds(common.make_engine(load_bilm(**files), precision), sentences)
        else:
            seconds = common.pipe_seconds(common.make_pipeline(files, precision), sentences)
        loading = resident_mb(peak=True)
        reset_peak()
        loaded = resident_mb()
        seconds(len(sentences), args.batch)
        print(json.dumps([imported, *(mb - imported for mb in (loading, loaded, resident_mb(peak=True)))]))
        return
    options = common.options_of(args.size)
    weights = 4 * options.n_parameters / 1e6
    common.write_model(folder, args.size, common.generated(BATCHES * args.batch, 0))
    print(f"{args.size} size, {BATCHES} batches of {args.batch} sentences, {args.threads} threads; MB\n")
    print(f"{common.row([*COLUMNS, 'less the weights'])}\n| --- | --- {'| --: ' * (len(COLUMNS) - 1)}|")
    for precision in args.precisions:
        for kind in ("engine", "nlp.pipe"):
            command = [sys.executable, "-m", "benchmarks.memory", "peaks", "--child", kind, "--precisions", precision]
            command += ["--size", args.size, "--batch", str(args.batch), "--threads", str(args.threads)]
            found = json.loads(subprocess.check_output(command, encoding="utf-8"))
            cells = [weights, *found, found[-1] - weights]
            print(common.row([kind, precision, *(f"{cell:,.0f}" for cell in cells)]), flush=True)


def stream(args: argparse.Namespace) -> None:
    every = max(1, args.tokens // 10)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    sentences, source = common.generated(POOL, 0), random.Random(0)
    given, points = 0, []

    def docs() -> Iterator[Doc]:
        while True:
            yield Doc(nlp.vocab, words=source.choice(sentences))

    print("| million tokens | MB |\n| --: | --: |")
    for doc in nlp.pipe(docs()):
        before, given = given, given + len(doc)
        if given // every > before // every:
            gc.collect()
            points.append((given / 1e6, resident_mb()))
            print(f"| {points[-1][0]:.2f} | {points[-1][1]:,.0f} |", flush=True)
        if given >= args.tokens:
            break
    if args.plot is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    panel.plot(*zip(*points), marker="o")
    panel.set(ylim=(0, 1.2 * max(mb for _, mb in points)), xlabel="million tokens", ylabel="resident memory, MB")
    args.plot.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.plot, dpi=120)
    pyplot.close(figure)


def with_children(process: int) -> float:
    """Return the memory of a process and of those that it started; 0 if it has ended."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return resident_mb(process=process) + sum(with_children(int(child)) for child in children)
    except OSError:
        return 0.0


def corpus(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder, "text.txt"), Path(folder, "out")
        tokens = sum(map(len, common.write_text(text, args.tokens)))
        size = text.stat().st_size
        shard = min(SHARD, size // 10 + 1)
        options = ["--dtype", "float16", "--workers", "1", "--shard-size", str(shard), "--quiet"]
        command = [sys.executable, "-m", "spacy", "elmo", "embed", "--tokenized", *options, str(text), str(out)]
        process = subprocess.Popen(command)
        most = [0.0] * 10
        while process.poll() is None:
            done = len([*out.glob("shards/part-*")])
            tenth = min(9, 10 * done // -(-size // shard))
            most[tenth] = max(most[tenth], with_children(process.pid))
            time.sleep(PAUSE)
        if process.returncode != 0:
            sys.exit(f"the command failed with {process.returncode}")
    print("| million tokens | MB |\n| --: | --: |")
    for tenth, peak in enumerate(most, 1):
        print(f"| {tokens * tenth / 1e7:.2f} | {peak:,.0f} |")


def main() -> None:
    parser = common.parser_of(__doc__)
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("peaks", parents=[common.parser_of(None, "size", "precisions", "threads")], add_help=False)
    part.add_argument("--batch", type=int, default=128, help="sentences of a batch")
    part.add_argument("--child", help=argparse.SUPPRESS)
    part.set_defaults(run=peaks)
    for run in (stream, corpus):
        part = parts.add_parser(run.__name__, parents=[common.parser_of(None, "threads")], add_help=False)
        part.add_argument("--tokens", type=int, default=10_000_000, help="that are read, at least")
        part.set_defaults(run=run)
        if run is stream:
            part.add_argument("--plot", type=Path, help="write the curve to this .png")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.run(args)


if __name__ == "__main__":
    main()
