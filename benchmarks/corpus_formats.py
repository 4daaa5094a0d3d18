"""Each format: bytes a token, tokens a second to write it, and seconds to open it and to fetch random sentences.

    python -m benchmarks.corpus_formats --text wikipedia.txt

Bytes a token do not depend on the machine's load. The files were just written, so they are read from memory. A sentence
is fetched with its vectors, without its words; of .spacy, all docs are read first.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_elmo.corpus import embed
from spacy_elmo.pipeline.attributes import vectors_of

from .common import parser_of, row, write_text

Fetch = Callable[[list[int]], Any]


def open_parquet(path: Path) -> Fetch:
    """Open the file as a data set; rows are taken by their numbers."""
    from pyarrow import dataset

    table = dataset.dataset(path)
    names = [name for name in table.schema.names if name.startswith(("vector", "layer"))]
    return lambda numbers: table.take(sorted(numbers), columns=names)


def open_hdf5(path: Path) -> Fetch:
    """Open the file; a dataset is read for each sentence."""
    file = h5py.File(path)
    return lambda numbers: [file[str(number)][()] for number in numbers]


def open_spacy(path: Path) -> Fetch:
    """Read all docs."""
    docs = list(DocBin().from_disk(path).get_docs(Vocab()))
    return lambda numbers: [vectors_of(docs[number], attr="elmo") for number in numbers]


def open_safetensors(path: Path) -> Fetch:
    """Open the file, and read where the sentences end; a part of the tensor is read for each."""
    from safetensors import safe_open

    file = safe_open(path, "numpy")
    ends = file.get_tensor("ends")
    starts = np.concatenate([[0], ends])
    parts = [file.get_slice(name) for name in file.keys() if name != "ends"]  # noqa: SIM118  # no dict
    return lambda numbers: [[part[starts[n] : ends[n]] for part in parts] for n in numbers]


def open_npy(path: Path) -> Fetch:
    """Map the array into memory."""
    array = np.load(path, mmap_mode="r")
    return lambda numbers: np.array(array[numbers])


OPENERS = {
    "parquet": open_parquet,
    "hdf5": open_hdf5,
    "spacy": open_spacy,
    "safetensors": open_safetensors,
    "npy": open_npy,
}
# format, type, layers, whether a vector a sentence
KINDS = [
    (format, dtype, layers, format == "npy")
    for format in OPENERS
    for dtype in ("float32", "float16")
    for layers in ("mean", "all")
    if format != "hdf5" or dtype == "float32"
]
KINDS += [("parquet", dtype, "mean", True) for dtype in ("float32", "float16")]


def main() -> None:
    parser = parser_of(__doc__, "threads")
    parser.add_argument("--text", type=Path, help="file of sentences a line; else they are generated")
    parser.add_argument("--tokens", type=int, default=500_000, help="of the corpus, at least")
    parser.add_argument("--fetched", type=int, default=1_000, help="sentences that are fetched at random")
    parser.add_argument("--folder", type=Path, help="for the files; else that of the system")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"| format | layers | type | bytes a token | tokens/s | s to open | s to fetch {args.fetched:,} |")
    print("| --- | --- | --- | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        text = Path(folder, "text.txt")
        sentences = write_text(text, args.tokens, args.text)
        tokens = sum(map(len, sentences))
        for format, dtype, layers, sentence in KINDS:
            path = Path(folder, f"vectors.{format}")
            begin = time.perf_counter()
            embed(text, path, layers=layers, dtype=dtype, sentence=sentence, tokenized=True)
            rate = tokens / (time.perf_counter() - begin)
            numbers = random.Random(0).choices(range(len(sentences)), k=args.fetched)
            begin = time.perf_counter()
            fetch = OPENERS[format](path)
            opened = time.perf_counter() - begin
            begin = time.perf_counter()
            fetch(numbers)
            fetched = time.perf_counter() - begin
            what = f"{format}, a vector a sentence" if sentence else format
            size = path.stat().st_size / tokens
            figures = [f"{size:,.1f}", f"{rate:,.0f}", f"{opened:.3f}", f"{fetched:.3f}"]
            print(row([what, layers, dtype, *figures]), flush=True)
            path.unlink()
    print(f"\n{tokens:,} tokens in {len(sentences):,} sentences, width 256")


if __name__ == "__main__":
    main()
