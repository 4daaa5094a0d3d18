"""Convert LitBank's coreference to .spacy files, a doc for each document: training, development and test part.

The clusters are the span groups coref_clusters_1 and so on. LitBank's corpus itself names no parts. These are split 0
of the ten of its coreference paper (Bamman et al. 2020; dbamman/lrec2020-coref, data/litbank_tenfold_splits/0): 80
documents to train, 10 to develop and 10 to test.

    python -m scripts.corpora.convert_coreference assets/litbank corpus/coreference
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError, shown
from spacy_elmo.tasks.coreference.annotations import annotate

from ..shared.command import run_command
from ..shared.corpus_files import read_lines, write_docs
from ..shared.messages import Messages

DEV = (940, 60, 208, 351, 2814, 158, 44, 6053, 15265, 768)  # numbers of Project Gutenberg
TEST = (6593, 271, 730, 16357, 2807, 1023, 1155, 238, 1661, 711)
_MARK = re.compile(r"(\()?(\d+)(\))?")
_NONE = ("", "_", "-")


def read_document(path: Path) -> tuple[list[list[str]], list[list[tuple[int, int]]]]:
    """Return the words of each sentence, and the bounds of each cluster's mentions.

    Raises CorpusError, which names the line.
    """
    sentences: list[list[str]] = [[]]
    clusters: dict[str, list[tuple[int, int]]] = defaultdict(list)
    opened: dict[str, list[int]] = defaultdict(list)
    token = 0
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("#begin document") or line.startswith("#end document"):
            continue
        if not line.strip():
            sentences.append([])
            continue
        columns = line.split("\t")
        if len(columns) < 5 or not columns[3]:
            raise CorpusError(Messages.CORPUS_CONLL.format(path=path, line=number, got=shown(line)))
        for mark in columns[-1].split("|"):
            if mark in _NONE:
                continue
            match = _MARK.fullmatch(mark)
            if match is None or (not match[1] and not opened[match[2]]):
                raise CorpusError(Messages.CORPUS_MENTION.format(path=path, line=number, got=shown(mark)))
            if match[1]:
                opened[match[2]].append(token)
            if match[3]:
                clusters[match[2]].append((opened[match[2]].pop(), token + 1))
        sentences[-1].append(columns[3])
        token += 1
    left = [name for name, starts in opened.items() if starts]
    if left:
        raise CorpusError(Messages.CORPUS_MENTION.format(path=path, line=number, got=f"an open cluster {left[0]}"))
    return [sentence for sentence in sentences if sentence], [sorted(cluster) for cluster in clusters.values()]


def to_doc(path: Path, vocab: Vocab) -> Doc:
    """Return the doc of a document, with its sentences and clusters."""
    sentences, clusters = read_document(path)
    words = [word for sentence in sentences for word in sentence]
    starts: list[bool | int | None] = [not place for sentence in sentences for place in range(len(sentence))]
    doc = Doc(vocab, words=words, sent_starts=starts)
    annotate(doc, sorted(clusters))
    return doc


def to_docs(paths: list[Path]) -> Iterator[Doc]:
    """Return a doc for each document."""
    vocab = Vocab()
    return (to_doc(path, vocab) for path in paths)


def number_of(path: Path) -> int:
    """Return the number of Project Gutenberg with which a file's name begins. Raises CorpusError if there is none."""
    match = re.match(r"(\d+)_", path.name)
    if match is None:
        raise CorpusError(Messages.CORPUS_NUMBER.format(path=path))
    return int(match[1])


def main(source: Path, target: Path) -> None:
    """Convert SOURCE, the folder of LitBank's .conll files, to train.spacy, dev.spacy and test.spacy in TARGET."""
    paths = sorted(source.glob("*.conll"), key=number_of)
    parts = {
        "train": [path for path in paths if number_of(path) not in (*DEV, *TEST)],
        "dev": [path for path in paths if number_of(path) in DEV],
        "test": [path for path in paths if number_of(path) in TEST],
    }
    for name, part in parts.items():
        write_docs(source, to_docs(part), target / f"{name}.spacy")


if __name__ == "__main__":
    run_command(main)
