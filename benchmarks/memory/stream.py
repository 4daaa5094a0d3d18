"""Memory of a process while a long stream of docs goes through nlp.pipe (Linux).

    python -m benchmarks.memory.stream --plot runs/memory/stream.png

A pipeline of the embedded biLM alone, with its cache of words, reads sentences that are drawn at random from 20,000.
The table has the memory of the process, imports included, in MB (10^6 bytes).
"""

import gc
import random
from collections.abc import Iterator
from pathlib import Path

import spacy
import torch
from spacy.tokens import Doc

from ..common.arguments import add_common, count, output, parser_of
from ..common.english_like import generated
from .resident import resident_mb

POOL = 20_000


def stream(tokens: int, every: int) -> list[tuple[float, float]]:
    """Read the stream and print a row at each point.

    tokens: of the stream. every: tokens from one point to the next. Returns the points: million tokens, MB.
    """
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
    return points


def draw(points: list[tuple[float, float]], path: Path) -> None:
    """Draw the curve.

    points: see stream. path: the .png to write.
    """
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
    parser = parser_of(__doc__)
    parser.add_argument("--tokens", type=count, default=10_000_000, help="of the stream")
    parser.add_argument("--every", type=count, help="tokens from one row to the next (default: a tenth of all)")
    add_common(parser, "threads")
    parser.add_argument("--plot", type=output(".png"), help="write the curve to this .png")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    points = stream(args.tokens, args.every or max(1, args.tokens // 10))
    if len(points) > 1:
        after = [memory for _, memory in points[1:]]
        change, span = after[-1] - after[0], max(after) - min(after)
        print(f"\nfrom the second point on: {change:+,.0f} MB at the end, {span:,.0f} MB from lowest to highest")
    if args.plot is not None:
        draw(points, args.plot)


if __name__ == "__main__":
    main()
