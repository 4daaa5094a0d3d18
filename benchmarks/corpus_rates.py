"""Tokens a second of `embed` beside the engine's own rate on the same sentences, and of two processes beside one.

    python -m benchmarks.corpus_rates --text wikipedia.txt

All sides run in turns, in one run. The sentences are read with --tokenized unless --lang is given. The engine gets them
in the windows in which `embed` gives them, and its vectors are thrown away. "Of the limit" is the rate divided by that
of the engine with the same number of threads; for two workers, by that of one process with two threads. All sides load
the biLM, two workers twice, so use many tokens.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from spacy_elmo.corpus import BiLMChoice, embed
from spacy_elmo.corpus.shards import WINDOW_TOKENS

from .common import LoadMeter, Sentences, parser_of, parts_of, row, write_text


def engine(sentences: Sentences, threads: int) -> float:
    """Return the seconds of the engine alone."""
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    bilm = BiLMChoice("en_mini").load()
    window, tokens = list[list[str]](), 0
    for i, sentence in enumerate(sentences, 1):
        window.append(sentence)
        tokens += len(sentence)
        if tokens >= WINDOW_TOKENS or i == len(sentences):
            for _ in bilm.embed(window):
                pass
            window, tokens = [], 0
    return time.perf_counter() - begin


def corpus(text: Path, format: str, lang: str | None, threads: int, workers: int) -> float:
    """Return the seconds of `embed`. threads: of torch, of all workers together."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory(dir=text.parent) as folder:
        begin = time.perf_counter()
        settings = {"format": format, "lang": lang, "tokenized": lang is None, "workers": workers, "layers": "mean"}
        embed(text, Path(folder, "out"), shard_size=1_000_000, **settings)  # type: ignore[arg-type]
        return time.perf_counter() - begin


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--text", type=Path, help="file of sentences a line; else they are generated")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of a measurement, at least")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured")
    parser.add_argument("--formats", type=parts_of, default="parquet,hdf5,spacy,safetensors", help="with commas")
    parser.add_argument("--lang", help="language of the tokenizer")
    parser.add_argument("--folder", type=Path, help="for the files; else that of the system")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        text = Path(folder, "text.txt")
        sentences = write_text(text, args.tokens, args.text)
        tokens = sum(map(len, sentences))
        run = partial(corpus, text, lang=args.lang)
        one, two = "the engine, 1 thread", "the engine, 2 threads"
        process = "embed to parquet, 1 process with 2 threads"
        workers = "embed to parquet, 2 workers with 1 thread each"
        sides: dict[str, tuple[Callable[[], float], str]] = {one: (partial(engine, sentences, 1), "")}
        sides |= {f"embed to {f}, 1 thread": (partial(run, f, threads=1, workers=1), one) for f in args.formats}
        sides[two] = (partial(engine, sentences, 2), "")
        sides[process] = (partial(run, "parquet", threads=2, workers=1), two)
        sides[workers] = (partial(run, "parquet", threads=2, workers=2), process)
        rates: dict[str, list[float]] = {name: [] for name in sides}
        loads = []
        for _ in range(args.rounds):
            for name, (seconds, _limit) in sides.items():
                meter = LoadMeter()
                rates[name].append(tokens / seconds())
                loads.append(meter.stop())
    print("| side | tokens/s, median | lowest to highest | of the limit, median | the limit |")
    print("| --- | --: | --- | --: | --- |")
    for name, (_, limit) in sides.items():
        of = f"{statistics.median(a / b for a, b in zip(rates[name], rates[limit])):.0%}" if limit else ""
        low, high = min(rates[name]), max(rates[name])
        print(row([name, f"{statistics.median(rates[name]):,.0f}", f"{low:,.0f} to {high:,.0f}", of, limit]))
    n = sum(load.disturbed for load in loads)
    print(f"\n{tokens:,} tokens; {n} of {len(loads)} measurements were disturbed by other processes")


if __name__ == "__main__":
    main()
