"""What the process occupies above what the imports take, and over a long stream (Linux).

    python benchmarks/memory.py                                        # batch 128, original size
    python benchmarks/memory.py --stream 10000000 --plot memory.png    # the embedded biLM

Batches: a fresh process for each precision and for the engine and nlp.pipe imports spaCy, torch and spacy_elmo, notes
its memory, loads random weights and runs some batches of different sentences; the row has the peaks above that.
Stream: nlp.pipe as it comes, with its cache of words, over sentences drawn from 20,000; the memory ten times.
"""

import argparse
import gc
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import spacy
import torch
from arguments import PRECISIONS, count, output, some_of
from resident import reset_peak, resident_mb
from spacy.tokens import Doc

BATCHES = 4
POOL = 20_000
FOLDER = Path(__file__).parents[1] / "runs" / "memory"


def child(kind: str, precision: str, batch: int, folder: Path) -> dict[str, float]:
    """MB: imported, loaded (its peak), peak while batches run, and the weights as float32."""
    # imports of the benchmarks' own modules count as imports
    from our_sides import engine_seconds, make_engine, make_pipeline, pipe_seconds

    from spacy_elmo.formats import read_options
    from spacy_elmo.modules import load_bilm

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


def table(args: argparse.Namespace) -> None:
    """A row for each process."""
    from english_like import generated
    from model_sizes import options_of, write_model

    folder = FOLDER / args.size
    write_model(folder, options_of(args.size), 0, generated(BATCHES * args.batch, 0))
    print(f"{args.size} size, {BATCHES} batches of {args.batch} sentences, {args.threads} threads; MB\n")
    print(
        "| what | precision | weights | imports | above them: peak of loading | loaded | peak of running "
        "| less the weights |"
    )
    print("| --- | --- | --: | --: | --: | --: | --: | --: |")  # fmt: skip
    for precision in args.precisions:
        for kind in ("engine", "nlp.pipe"):
            command = [sys.executable, __file__, "--child", kind, "--precisions", precision, "--size", args.size]
            command += ["--batch", str(args.batch), "--threads", str(args.threads)]
            result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, encoding="utf-8")
            found = json.loads(result.stdout)
            above = [found[name] - found["imported"] for name in ("loading", "loaded", "running")]
            cells = [found["weights"], found["imported"], *above, above[-1] - found["weights"]]
            print(f"| {kind} | {precision} | {' | '.join(f'{cell:,.0f}' for cell in cells)} |", flush=True)


def stream(tokens: int, every: int, plot: Path | None) -> None:
    """A line every so many tokens."""
    from english_like import generated

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    sentences, source = generated(POOL, 0), random.Random(0)
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
        if given >= tokens:
            break
    if len(points) > 1:
        after = [memory for _, memory in points[1:]]
        change, span = after[-1] - after[0], max(after) - min(after)
        print(f"\nfrom the second point on: {change:+,.0f} MB at the end, {span:,.0f} MB from lowest to highest")
    if plot is not None:
        draw(points, plot)


def draw(points: list[tuple[float, float]], path: Path) -> None:
    """Write a .png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    panel.plot(*zip(*points), marker="o")
    panel.set_ylim(0, 1.2 * max(memory for _, memory in points))
    panel.set_xlabel("million tokens")
    panel.set_ylabel("resident memory, MB")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=("original", "small", "mini"), default="original")
    parser.add_argument("--batch", type=count, default=128)
    parser.add_argument("--precisions", type=some_of(PRECISIONS), default=list(PRECISIONS), metavar="A,B")
    parser.add_argument("--threads", type=count, default=2)
    parser.add_argument("--stream", type=count, metavar="TOKENS", help="the stream alone, of so many tokens")
    parser.add_argument("--every", type=count, metavar="TOKENS", help="between two lines of it; default: a tenth")
    parser.add_argument("--plot", type=output(".png"), help="write the stream's curve to this .png")
    parser.add_argument("--child", choices=("engine", "nlp.pipe"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.child:
        print(json.dumps(child(args.child, args.precisions[0], args.batch, FOLDER / args.size)))
    elif args.stream:
        stream(args.stream, args.every or max(1, args.stream // 10), args.plot)
    else:
        table(args)


if __name__ == "__main__":
    main()
