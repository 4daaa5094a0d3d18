"""Convert pairs of premise and hypothesis to a .spacy file, a doc for each pair with its class in `doc.cats`.

What a source is, its name says:

    labels.dev   e-SNLI's classes; the premises are beside it in s1.dev, the hypotheses in s2.dev, a line each
    X.jsonl      an object a line: label, premise, hypothesis
    SICK_X.txt   SICK's columns, the first line names them
    X.tsv        class, premise and hypothesis, with a tab between them

The prepared files of asset_files.py are used instead of their originals if they are in assets/.

With --dev the last pairs of the first source go to a file of their own: --dev-pairs of them, and those before that have
the same premise as the first of them.

    python -m scripts.corpora.convert_entailment train.spacy labels.dev dev.jsonl --dev dev.spacy --dev-pairs 1000
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import spacy
import typer
from spacy.tokens import Doc

from spacy_elmo.errors import CorpusError, shown
from spacy_elmo.tasks.entailment.pairs import make_pair

from ..assets.asset_files import prepared_or_given
from ..shared.command import run_command
from ..shared.corpus_files import read_lines, refuse_sources, write_docs
from ..shared.messages import Messages

LABELS = ("contradiction", "entailment", "neutral")


class Pair(NamedTuple):
    """A line of a source. label: its class."""

    label: str
    premise: str
    hypothesis: str


def read_pairs(source: Path) -> list[Pair]:
    """Return the pairs of a source, in texts with single blanks. Raises CorpusError, which names the line."""
    pairs = []
    for number, fields in _read_fields(source):
        texts = [" ".join(field.split()) for field in fields if isinstance(field, str)]
        if len(fields) != 3 or len(texts) != 3 or not all(texts):
            raise CorpusError(Messages.CORPUS_PAIR.format(path=source, line=number, got=shown(fields)))
        label, premise, hypothesis = texts
        if label.lower() not in LABELS:
            expected = ", ".join(LABELS)
            raise CorpusError(
                Messages.CORPUS_CLASS.format(path=source, line=number, got=shown(label), expected=expected)
            )
        pairs.append(Pair(label.lower(), premise, hypothesis))
    if not pairs:
        raise CorpusError(Messages.CORPUS_EMPTY.format(path=source))
    return pairs


def _read_fields(source: Path) -> Iterator[tuple[int, Sequence[object]]]:
    """Return number and label, premise and hypothesis of each line."""
    lines = _lines(source)
    if source.stem == "labels":
        premises, hypotheses = (_lines(source.with_stem(stem)) for stem in ("s1", "s2"))
        if not len(lines) == len(premises) == len(hypotheses):
            got = f"{len(lines)}, {len(premises)} and {len(hypotheses)}"
            raise CorpusError(Messages.CORPUS_PARALLEL.format(path=source, got=got))
        yield from enumerate(zip(lines, premises, hypotheses), 1)
    elif source.suffix == ".jsonl":
        for number, line in enumerate(lines, 1):
            try:
                values = json.loads(line)
                yield number, [values[key] for key in Pair._fields]
            except (ValueError, TypeError, KeyError) as error:
                raise CorpusError(Messages.CORPUS_PAIR.format(path=source, line=number, got=shown(line))) from error
    elif source.name.startswith("SICK"):
        for number, row in enumerate(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), 2):
            yield number, [row.get(name) for name in ("entailment_judgment", "sentence_A", "sentence_B")]
    else:
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, 1))


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, without the empty one after the last line feed."""
    lines = read_lines(path)
    return lines[:-1] if lines and not lines[-1] else lines


def divide(pairs: list[Pair], number: int) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs into the first ones and the last `number`, or more: pairs with the same premise stay together."""
    start = max(0, len(pairs) - number)
    while 0 < start < len(pairs) and pairs[start - 1].premise == pairs[start].premise:
        start -= 1
    return pairs[:start], pairs[start:]


def to_docs(pairs: Iterable[Pair]) -> Iterator[Doc]:
    """Return a doc for each pair, with 1.0 for its class and 0.0 for the others."""
    nlp = spacy.blank("en")
    for label, premise, hypothesis in pairs:
        doc = make_pair(nlp, premise, hypothesis)
        doc.cats = {other: float(other == label) for other in LABELS}
        yield doc


def _write(source: Path, pairs: Sequence[Pair], target: Path) -> None:
    write_docs(source, to_docs(pairs), target)
    ((label, count),) = Counter(pair.label for pair in pairs).most_common(1)
    print(f"{target}: always {label}, the most frequent class, would be {count / len(pairs):.1%} right")


def main(
    target: Path,
    sources: list[Path],
    dev: Annotated[Path | None, typer.Option(help="File for the last pairs of the first source")] = None,
    dev_pairs: Annotated[int, typer.Option(min=1, help="How many these are at least")] = 1000,
) -> None:
    """Convert SOURCES to TARGET, a .spacy file."""
    sources = prepared_or_given(sources)
    refuse_sources(target, *sources, *([] if dev is None else [dev]))
    if dev is not None:
        refuse_sources(dev, *sources)
    first, *others = [read_pairs(source) for source in sources]
    kept, last = (first, []) if dev is None else divide(first, dev_pairs)
    _write(sources[0], [*kept, *(pair for pairs in others for pair in pairs)], target)
    if dev is not None:
        _write(sources[0], last, dev)


if __name__ == "__main__":
    run_command(main)
