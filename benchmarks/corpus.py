"""Speed and sizes of `embed`.

    python -m benchmarks.corpus rates --text wikipedia.txt
    python -m benchmarks.corpus formats --text wikipedia.txt

rates: tokens a second beside the engine's own rate on the same sentences, and of two processes beside one, in turns.
The engine gets the sentences in windows of the size of those of `embed`, and its vectors are thrown away. "Of the
limit" is the rate divided by that of the engine with the same number of threads; for two workers, by that of one
process with two threads. All sides load the biLM, two workers twice, so use many tokens.
formats: bytes a token, tokens a second to write, and seconds to open a file and to fetch 1,000 random sentences. The
files were just written, so they are read from memory. A sentence is fetched with its vectors, without its words; of
.spacy, all docs are read first.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from spacy.tokens import DocBin
from spacy.training.batchers import minibatch_by_words
from spacy.vocab import Vocab

from spacy_elmo.corpus import BiLMChoice, embed
from spacy_elmo.corpus.shards import WINDOW_TOKENS
from spacy_elmo.models.doc_layers import vectors_of

from .common import DISTURBED, Load, Sentences, parser_of, row, write_text

FETCHED = 1_000


def engine(sentences: Sentences, threads: int) -> float:
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    bilm = BiLMChoice("en_core").load()
    for window in minibatch_by_words(sentences, WINDOW_TOKENS, tolerance=0):
        for _ in bilm.embed(window):
            pass
    return time.perf_counter() - begin


def written(text: Path, threads: int, workers: int) -> float:
    """Return the seconds of `embed`. threads: of torch, of all workers together."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory(dir=text.parent) as folder:
        begin = time.perf_counter()
        out = Path(folder, "out")
        embed(text, out, shard_size=1_000_000, format="parquet", tokenized=True, workers=workers, layers="mean")
        return time.perf_counter() - begin


def rates(text: Path, sentences: Sentences, args: argparse.Namespace) -> None:
    tokens, loads = sum(map(len, sentences)), []
    one, two, process = "the engine, 1 thread", "the engine, 2 threads", "embed to parquet, 1 process with 2 threads"
    sides: dict[str, tuple[Callable[[], float], str]] = {  # the second: whose rate is the limit
        one: (partial(engine, sentences, 1), ""),
        "embed to parquet, 1 thread": (partial(written, text, 1, 1), one),
        two: (partial(engine, sentences, 2), ""),
        process: (partial(written, text, 2, 1), two),
        "embed to parquet, 2 workers with 1 thread each": (partial(written, text, 2, 2), process),
    }
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(args.rounds):
        for name, (seconds, _limit) in sides.items():
            load = Load()
            found[name].append(tokens / seconds())
            loads.append(load.cores())
    print("| side | tokens/s, median | lowest to highest | of the limit, median | the limit |")
    print("| --- | --: | --- | --: | --- |")
    for name, (_, limit) in sides.items():
        of = f"{statistics.median(a / b for a, b in zip(found[name], found[limit])):.0%}" if limit else ""
        low, high = min(found[name]), max(found[name])
        print(row([name, f"{statistics.median(found[name]):,.0f}", f"{low:,.0f} to {high:,.0f}", of, limit]))
    n = sum(cores > DISTURBED for cores in loads)
    print(f"\n{n} of {len(loads)} measurements were disturbed by other processes")


def fetcher(path: Path) -> Callable[[list[int]], Any]:
    """Open a file, and return what reads the vectors of sentences by their numbers."""
    if path.suffix == ".parquet":
        from pyarrow import dataset

        table = dataset.dataset(path)
        names = [name for name in table.schema.names if name.startswith(("vector", "layer"))]
        return lambda numbers: table.take(sorted(numbers), columns=names)
    if path.suffix == ".hdf5":
        file = h5py.File(path)
        return lambda numbers: [file[str(number)][()] for number in numbers]
    if path.suffix == ".spacy":
        docs = list(DocBin().from_disk(path).get_docs(Vocab()))
        return lambda numbers: [vectors_of(docs[number], attr="elmo") for number in numbers]
    if path.suffix == ".npy":
        array = np.load(path, mmap_mode="r")
        return lambda numbers: np.array(array[numbers])
    from safetensors import safe_open

    tensors = safe_open(path, "numpy")
    ends = tensors.get_tensor("ends")
    starts = np.concatenate([[0], ends])
    parts = [tensors.get_slice(name) for name in tensors.keys() if name != "ends"]  # noqa: SIM118  # no dict
    return lambda numbers: [[part[starts[n] : ends[n]] for part in parts] for n in numbers]


def formats(text: Path, sentences: Sentences, args: argparse.Namespace) -> None:
    kinds = [  # format, type, layers, whether a vector a sentence
        (format, dtype, layers, format == "npy")
        for format in ("parquet", "hdf5", "spacy", "safetensors", "npy")
        for dtype in ("float32", "float16")
        for layers in ("mean", "all")
        if format != "hdf5" or dtype == "float32"
    ]
    kinds += [("parquet", dtype, "mean", True) for dtype in ("float32", "float16")]
    torch.set_num_threads(args.threads)
    tokens = sum(map(len, sentences))
    print(f"| format | layers | type | bytes a token | tokens/s | s to open | s to fetch {FETCHED:,} |")
    print("| --- | --- | --- | --: | --: | --: | --: |")
    for format, dtype, layers, sentence in kinds:
        path = text.with_name(f"vectors.{format}")
        begin = time.perf_counter()
        embed(text, path, layers=layers, dtype=dtype, sentence=sentence, tokenized=True)
        rate = tokens / (time.perf_counter() - begin)
        begin = time.perf_counter()
        fetch = fetcher(path)
        opened = time.perf_counter() - begin
        begin = time.perf_counter()
        fetch(random.Random(0).choices(range(len(sentences)), k=FETCHED))
        fetched = time.perf_counter() - begin
        what = f"{format}, a vector a sentence" if sentence else format
        figures = [f"{path.stat().st_size / tokens:,.1f}", f"{rate:,.0f}", f"{opened:.3f}", f"{fetched:.3f}"]
        print(row([what, layers, dtype, *figures]), flush=True)
        path.unlink()


def main() -> None:
    parser = parser_of(__doc__, "threads")
    parser.add_argument("part", choices=("rates", "formats"))
    parser.add_argument("--text", type=Path, help="file of sentences a line; else they are generated")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of a measurement, at least")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side of the rates is measured")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        sentences = write_text(text, args.tokens, args.text)
        print(f"{sum(map(len, sentences)):,} tokens in {len(sentences):,} sentences, en_core, width 512\n")
        (rates if args.part == "rates" else formats)(text, sentences, args)


if __name__ == "__main__":
    main()
