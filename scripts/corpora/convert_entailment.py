"""Convert pairs of premise and hypothesis to a .spacy file, a doc for each pair with its class in `doc.cats`.

What a source is, its name says:

    labels.dev   e-SNLI's classes; the premises are beside it in s1.dev, the hypotheses in s2.dev, a line each
    X.jsonl      an object a line: label, premise, hypothesis
    SICK_X.txt   SICK's columns, the first line names them
    X.tsv        class, premise and hypothesis, with a tab between them

The prepared files of get_assets.py are used instead of their originals if they are in assets/.

With --dev the last pairs of the first source go to a file of their own: --dev-pairs of them, and those before that have
the same premise as the first of them.

    python -m scripts.corpora.convert_entailment train.spacy labels.dev dev.jsonl --dev dev.spacy --dev-pairs 1000
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.tokens import Doc

from spacy_elmo.errors import CorpusError
from spacy_elmo.tasks.entailment import make_pair

from ..assets.get_assets import prepared_or_given
from ..shared import read_lines, run_command, write_docs

LABELS = ("contradiction", "entailment", "neutral")
Pair = tuple[str, str, str]  # class, premise, hypothesis


def read_pairs(source: Path) -> list[Pair]:
    """Return the pairs of a source, in texts with single blanks. Raises CorpusError, which names the line."""
    pairs: list[Pair] = []
    try:
        for fields in _read_fields(source):
            label, premise, hypothesis = (" ".join(field.split()) for field in fields)
            if label.lower() not in LABELS or not premise or not hypothesis:
                raise ValueError(f"got {label!r}, {premise!r}, {hypothesis!r}")
            pairs.append((label.lower(), premise, hypothesis))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorpusError(
            f"{source}: after {len(pairs)} pairs: {error}. Expected a class ({', '.join(LABELS)}), a premise and a "
            "hypothesis, none of them empty."
        ) from error
    return pairs


def _read_fields(source: Path) -> Iterator[Sequence[str]]:
    """Yield class, premise and hypothesis of each line."""
    lines = _lines(source)
    if source.stem == "labels":
        yield from zip(lines, *(_lines(source.with_stem(stem)) for stem in ("s1", "s2")), strict=True)
    elif source.suffix == ".jsonl":
        for line in lines:
            values = json.loads(line)
            yield [values[key] for key in ("label", "premise", "hypothesis")]
    elif source.name.startswith("SICK"):
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield [row[name] for name in ("entailment_judgment", "sentence_A", "sentence_B")]
    else:
        yield from (line.split("\t") for line in lines)


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, without the empty one after the last line feed."""
    lines = read_lines(path)
    return lines[:-1] if not lines[-1] else lines


def divide(pairs: list[Pair], number: int) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs into the first ones and the last `number`, or more: pairs with the same premise stay together."""
    start = max(0, len(pairs) - number)
    while 0 < start < len(pairs) and pairs[start - 1][1] == pairs[start][1]:
        start -= 1
    return pairs[:start], pairs[start:]


def _write(source: Path, pairs: Sequence[Pair], target: Path) -> None:
    """Write a doc for each pair, with 1.0 for its class and 0.0 for the others."""
    nlp = spacy.blank("en")
    docs: list[Doc] = []
    for label, premise, hypothesis in pairs:
        docs.append(make_pair(nlp, premise, hypothesis))
        docs[-1].cats = {other: float(other == label) for other in LABELS}
    write_docs(source, docs, target)
    ((label, count),) = Counter(label for label, _, _ in pairs).most_common(1)
    print(f"{target}: always {label}, the most frequent class, would be {count / len(pairs):.1%} right")


def main(
    target: Path,
    sources: list[Path],
    dev: Annotated[Path | None, typer.Option(help="File for the last pairs of the first source")] = None,
    dev_pairs: Annotated[int, typer.Option(min=1, help="How many these are at least")] = 1000,
) -> None:
    """Convert SOURCES to TARGET, a .spacy file."""
    sources = prepared_or_given(sources)
    kept, *others = [read_pairs(source) for source in sources]
    if dev is not None:
        kept, last = divide(kept, dev_pairs)
        _write(sources[0], last, dev)
    _write(sources[0], [*kept, *(pair for pairs in others for pair in pairs)], target)


if __name__ == "__main__":
    run_command(main)
