"""Convert semantic roles in the columns of CoNLL-2005 to a .spacy file, a doc for each sentence.

The columns, divided by tabs: word, two tags, lemma and frame of a predicate (both - for other words), and then a column
for each predicate in the order of the text, with brackets around its roles: (ARG0* ... *). Lines with # are comments.

    python -m scripts.corpora.convert_roles propbank_ewt_train.conll corpus/roles/train.spacy
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.roles import PREDICATES, roles_key

from ..shared import read_lines, run_command, write_docs

_ROLE = re.compile(r"(?:\(([^\s()*]+))?\*(\))?")
_FRAME, _FIRST_ROLE = 4, 5


def read_sentences(path: Path) -> Iterator[tuple[int, list[list[str]]]]:
    """Return each sentence: the number of its first line, and the columns of its words."""
    rows: list[list[str]] = []
    for number, line in enumerate([*read_lines(path), ""], 1):
        if line.startswith("# "):
            continue
        if line.strip():
            rows.append(line.split("\t"))
            if len(rows[-1]) < _FIRST_ROLE or len(rows[-1]) != len(rows[0]) or not rows[-1][0].strip():
                raise CorpusError(
                    f"{path}, line {number}: expected a word, two tags, lemma and frame, and as many columns of roles "
                    f"as the other lines of the sentence have, divided by tabs; got {line!r}."
                )
        elif rows:
            yield number - len(rows), rows
            rows = []


def to_docs(path: Path) -> Iterator[Doc]:
    """Return a doc for each sentence. Its spaces are marked as unknown, so that spaCy does not tokenise it again.

    Raises CorpusError, which names the line.
    """
    vocab = Vocab()
    for first, rows in read_sentences(path):
        starts: list[bool | int | None] = [True, *[False] * (len(rows) - 1)]
        doc = Doc(vocab, words=[row[0] for row in rows], sent_starts=starts)
        predicates = [place for place, row in enumerate(rows) if row[_FRAME] != "-"]
        n_columns = len(rows[0]) - _FIRST_ROLE
        if len(predicates) != n_columns:
            raise CorpusError(
                f"{path}, line {first}: {n_columns} columns of roles. Expected {len(predicates)}, one a predicate."
            )
        doc.spans[PREDICATES] = [doc[place : place + 1] for place in predicates]
        for number, place in enumerate(predicates):
            spans = read_roles([row[_FIRST_ROLE + number] for row in rows], path, first)
            doc.spans[roles_key(place)] = [Span(doc, start, end, label=label) for start, end, label in spans]
        yield doc


def read_roles(column: list[str], path: Path, first: int) -> list[tuple[int, int, str]]:
    """Return start, end and label of the roles in a column. Raises CorpusError if its brackets are wrong."""
    spans: list[tuple[int, int, str]] = []
    start: int | None = None
    label = ""
    for place, text in enumerate([*column, "*"]):
        match = _ROLE.fullmatch(text)
        late = place == len(column) and start is not None
        if match is None or late or (match[1] and start is not None) or (match[2] and not match[1] and start is None):
            line = first + min(place, len(column) - 1)
            raise CorpusError(
                f"{path}, line {line}: the role is {text!r}. Expected *, or brackets like (ARG0* ... *), not nested."
            )
        if match[1]:
            start, label = place, match[1]
        if match[2] and start is not None:
            spans.append((start, place + 1, label))
            start = None
    return spans


def main(source: Path, target: Path) -> None:
    """Convert SOURCE to TARGET, a .spacy file."""
    write_docs(source, to_docs(source), target)


if __name__ == "__main__":
    run_command(main)
