"""Largest differences between the vectors of one pipeline used in many ways.

    python -m benchmarks.same_vectors

The reference: each doc by itself, without a cache of words.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

import spacy_elmo

from .common import parser_of

Layers = npt.NDArray[np.float32]


def pipeline(**model: object) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"model": model})
    return nlp


def difference(docs: Sequence[Doc], expected: Sequence[Layers]) -> float:
    assert len(docs) % len(expected) == 0  # several threads' docs
    return max(float(np.abs(doc._.elmo_layers - layers).max(initial=0)) for doc, layers in zip(docs, cycle(expected)))


def in_threads(nlp: Language, texts: list[str], threads: int) -> list[Doc]:
    """All texts in every thread, all at once; the docs of all threads, one thread's after the other's."""
    with ThreadPoolExecutor(threads) as pool:
        return [doc for docs in pool.map(lambda _: list(nlp.pipe(texts)), range(threads)) for doc in docs]


def written(docs: Sequence[Doc]) -> list[Doc]:
    docbin = DocBin(docs=docs, store_user_data=True)
    return list(DocBin().from_bytes(docbin.to_bytes()).get_docs(docs[0].vocab))


def saved(nlp: Language) -> Language:
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(Path(folder, "saved"))
        return spacy.load(Path(folder, "saved"))


def main() -> None:
    parser = parser_of(__doc__)
    parser.parse_args()
    examples = next(Path(spacy_elmo.__file__).parent.rglob("senses.tsv"))
    texts = [line.split("\t")[2] for line in examples.read_text(encoding="utf8").splitlines()] * 10
    plain = pipeline(cached_words=0)
    expected = [doc._.elmo_layers for doc in map(plain, texts)]
    nlp = pipeline()
    ways: dict[str, Callable[[], Sequence[Doc]]] = {
        "one by one again": lambda: list(map(plain, texts)),
        "cold word cache": lambda: list(pipeline().pipe(texts)),
        "warm word cache": lambda: list(nlp.pipe(texts)) and list(nlp.pipe(texts)),
        "batch_size 7": lambda: list(nlp.pipe(texts, batch_size=7)),
        "batch_size 1000": lambda: list(nlp.pipe(texts, batch_size=1000)),
        "order reversed": lambda: list(nlp.pipe(texts[::-1]))[::-1],
        "8 threads": lambda: in_threads(nlp, texts, 8),
        "8 threads, a cache too small": lambda: in_threads(pipeline(cached_words=50), texts, 8),
        "n_process 2": lambda: list(nlp.pipe(texts, n_process=2)),
        "saved and loaded": lambda: list(saved(nlp).pipe(texts)),
        "bytes": lambda: list(spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()).pipe(texts)),
        "pickled": lambda: list(pickle.loads(pickle.dumps(nlp)).pipe(texts)),
        "docs through a DocBin": lambda: written(list(nlp.pipe(texts))),
    }
    print(f"{len(texts)} docs, {sum(layers.shape[1] for layers in expected):,} tokens, embedded biLM\n")
    print("| way | largest difference |\n|---|---|")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, way in ways.items():
            print(f"| {name} | {difference(way(), expected):.1e} |", flush=True)


if __name__ == "__main__":
    main()
