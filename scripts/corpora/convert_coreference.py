"""Convert LitBank's coreference to .spacy files, a doc for each document: training, development and test part.

The clusters are the span groups coref_clusters_1 and so on. LitBank's corpus itself names no parts. These are split 0
of the ten of its coreference paper (Bamman et al. 2020; dbamman/lrec2020-coref, data/litbank_tenfold_splits/0): 80
documents to train, 10 to develop and 10 to test.

    python -m scripts.corpora.convert_coreference assets/litbank corpus/coreference
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.coreference import annotate

from ..shared import read_lines, run_command, write_docs

DEV = (940, 60, 208, 351, 2814, 158, 44, 6053, 15265, 768)  # numbers of Project Gutenberg
TEST = (6593, 271, 730, 16357, 2807, 1023, 1155, 238, 1661, 711)
_MARK = re.compile(r"(\()?(\d+)(\))?")


def to_doc(path: Path, vocab: Vocab) -> Doc:
    """Return the doc of a document, with its sentences and clusters. Raises CorpusError, which names the line."""
    words: list[str] = []
    starts: list[bool | int | None] = []
    clusters: dict[str, list[tuple[int, int]]] = defaultdict(list)
    opened: dict[str, list[int]] = defaultdict(list)
    begins = True
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith(("#begin document", "#end document")):
            continue
        if not line.strip():
            begins = True
            continue
        columns = line.split("\t")
        if len(columns) < 5 or not columns[3]:
            raise CorpusError(f"{path}, line {number}: expected columns with tabs, the fourth a word; got {line!r}.")
        for mark in columns[-1].split("|"):
            if mark in ("", "_", "-"):
                continue
            match = _MARK.fullmatch(mark)
            if match is None or (not match[1] and not opened[match[2]]):
                raise CorpusError(
                    f"{path}, line {number}: got {mark!r}. Expected (3 where a mention of cluster 3 begins, 3) where "
                    "it ends, and (3) for a mention of one word."
                )
            if match[1]:
                opened[match[2]].append(len(words))
            if match[3]:
                clusters[match[2]].append((opened[match[2]].pop(), len(words) + 1))
        words.append(columns[3])
        starts.append(begins)
        begins = False
    if left := [name for name, places in opened.items() if places]:
        raise CorpusError(f"{path}: got an open cluster {left[0]}. Expected each mention that begins to end.")
    doc = Doc(vocab, words=words, sent_starts=starts)
    annotate(doc, sorted(sorted(cluster) for cluster in clusters.values()))
    return doc


def main(source: Path, target: Path) -> None:
    """Convert SOURCE, the folder of LitBank's .conll files, to train.spacy, dev.spacy and test.spacy in TARGET."""
    vocab = Vocab()
    parts: dict[str, list[Doc]] = {"train": [], "dev": [], "test": []}
    paths = {int(path.name.partition("_")[0]): path for path in source.glob("*.conll")}  # like 158_emma_brat.conll
    for number, path in sorted(paths.items()):
        part = "dev" if number in DEV else "test" if number in TEST else "train"
        parts[part].append(to_doc(path, vocab))
    for name, docs in parts.items():
        write_docs(source, docs, target / f"{name}.spacy")


if __name__ == "__main__":
    run_command(main)
