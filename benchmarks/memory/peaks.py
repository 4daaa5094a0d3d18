"""Memory that a process occupies while it embeds, above what the imports occupy (Linux).

    python -m benchmarks.memory.peaks                 # batch 128, original size

A fresh process for each precision, and for the engine and nlp.pipe, imports spaCy, torch and spacy_elmo and notes its
memory. Then it loads random weights and runs some batches of different sentences. The table has the peaks above the
imports, in MB (10^6 bytes).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import spacy  # noqa: F401  # an import that the memory of the biLM does not count
import torch

from spacy_elmo.formats import read_options
from spacy_elmo.modules import load_bilm

from ..common.arguments import add_common, count, parser_of
from ..common.english_like import generated
from ..common.model_sizes import RUNS, options_of, write_model
from ..common.our_sides import engine_seconds, make_engine, make_pipeline, pipe_seconds
from .resident import reset_peak, resident_mb

BATCHES = 4
COLUMNS = ("what", "precision", "weights", "imports", "above them: peak of loading", "loaded", "peak of running")
KINDS = ("engine", "nlp.pipe")


def child(kind: str, precision: str, batch: int, folder: Path) -> dict[str, float]:
    """Measure in this process.

    kind: one of KINDS. precision: of the matrix multiplications. batch: sentences of a batch. folder: of the biLM.
    Returns MB: imported, loading (its peak), loaded, running (the peak of the batches), and the weights as float32.
    """
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "model.hdf5")}
    reset_peak()
    found = {"imported": resident_mb()}
    if kind == "engine":
        bilm = load_bilm(**files)
        seconds = engine_seconds(make_engine(bilm, precision), sentences)  # type: ignore[arg-type]
        n_parameters = bilm.options.n_parameters
        del bilm
    else:
        seconds = pipe_seconds(make_pipeline(files, precision), sentences)  # type: ignore[arg-type]
        n_parameters = read_options(files["options_file"]).n_parameters
    found |= {"weights": 4 * n_parameters / 1e6, "loading": resident_mb(peak=True)}
    reset_peak()
    found["loaded"] = resident_mb()
    seconds(len(sentences), batch)
    found["running"] = resident_mb(peak=True)
    return found


def measured(kind: str, precision: str, args: argparse.Namespace) -> dict[str, float]:
    """Run `child` in a fresh process.

    kind, precision: see child. args: the command line. Returns what child does.
    """
    command = [sys.executable, "-m", f"{__package__}.peaks", "--child", kind, "--precisions", precision]
    command += ["--size", args.size, "--batch", str(args.batch), "--threads", str(args.threads)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8")
    found: dict[str, float] = json.loads(result.stdout)
    return found


def main() -> None:
    parser = parser_of(__doc__)
    add_common(parser, "size")
    parser.add_argument("--batch", type=count, default=128, help="sentences of a batch")
    add_common(parser, "precisions", "threads")
    parser.add_argument("--child", choices=KINDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    folder = RUNS / "memory" / args.size
    if args.child:
        print(json.dumps(child(args.child, args.precisions[0], args.batch, folder)))
        return
    write_model(folder, options_of(args.size), 0, generated(BATCHES * args.batch, 0))
    print(f"{args.size} size, {BATCHES} batches of {args.batch} sentences, {args.threads} threads; MB\n")
    print(f"| {' | '.join(COLUMNS)} | less the weights |\n| --- | --- {'| --: ' * (len(COLUMNS) - 1)}|")
    for precision in args.precisions:
        for kind in KINDS:
            found = measured(kind, precision, args)
            above = [found[name] - found["imported"] for name in ("loading", "loaded", "running")]
            cells = [found["weights"], found["imported"], *above, above[-1] - found["weights"]]
            print(f"| {kind} | {precision} | {' | '.join(f'{cell:,.0f}' for cell in cells)} |", flush=True)


if __name__ == "__main__":
    main()
