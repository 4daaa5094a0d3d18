"""Convert sentiment in fastText's format (`__label__N`, tab, words separated by blanks) to a .spacy file.

Each line becomes a doc.

python -m scripts.corpora.convert_sst sst_train.txt corpus/textcat/train.spacy
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError, shown

from ..shared.command import run_command
from ..shared.corpus_files import read_lines, write_docs
from ..shared.messages import Messages

_LINE = re.compile(r"__label__(\S+)\t(.*)")


def read_examples(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Return label and words of each line that is not empty. Raises CorpusError, which names the line."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise CorpusError(Messages.CORPUS_LABEL.format(path=path, line=number, got=shown(line)))
        if not (words := match[2].split()):
            raise CorpusError(Messages.CORPUS_NO_TEXT.format(path=path, line=number))
        yield match[1], words


def to_docs(path: Path) -> Iterator[Doc]:
    """Return a doc for each line, with 1.0 for its label and 0.0 for the file's other labels."""
    vocab = Vocab()
    examples = list(read_examples(path))
    labels = sorted({label for label, _ in examples})
    for label, words in examples:
        doc = Doc(vocab, words=words)
        doc.cats = {other: float(other == label) for other in labels}
        yield doc


def main(source: Path, target: Path) -> None:
    """Convert SOURCE to TARGET, a .spacy file."""
    write_docs(source, to_docs(source), target)


if __name__ == "__main__":
    run_command(main)
