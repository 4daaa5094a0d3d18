"""Convert sentiment in fastText's format (`__label__N`, tab, words separated by blanks) to a .spacy file.

Each line becomes a doc.

    python -m scripts.corpora.convert_sst sst_train.txt corpus/textcat/train.spacy
"""

from __future__ import annotations

import re
from pathlib import Path

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError

from ..shared import read_lines, run_command, write_docs

_LINE = re.compile(r"__label__(\S+)\t(.*\S.*)")


def to_docs(path: Path) -> list[Doc]:
    """Return a doc for each line, with 1.0 for its label and 0.0 for the file's other labels."""
    vocab = Vocab()
    examples = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            match = _LINE.fullmatch(line)
            if match is None:
                raise CorpusError(f"{path}, line {number}: expected __label__, a name, a tab and a text; got {line!r}.")
            examples.append((match[1], Doc(vocab, words=match[2].split())))
    labels = sorted({label for label, _ in examples})
    for label, doc in examples:
        doc.cats = {other: float(other == label) for other in labels}
    return [doc for _, doc in examples]


def main(source: Path, target: Path) -> None:
    """Convert SOURCE to TARGET, a .spacy file."""
    write_docs(source, to_docs(source), target)


if __name__ == "__main__":
    run_command(main)
