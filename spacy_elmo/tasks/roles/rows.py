"""What the network reads: a row for each predicate, with the tokens among which its arguments may be."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spacy.tokens import Doc


class Row(NamedTuple):
    """The tokens around a predicate.

    doc: index of the doc in its batch.
    predicate: index of the predicate's token in its doc.
    start, end: the row is doc[start:end].
    """

    doc: int
    predicate: int
    start: int
    end: int


def rows_of(docs: Sequence[Doc], predicates: Sequence[Sequence[int]], reach: int) -> list[Row]:
    """Return a row for each predicate: its sentence, or the doc if it has no sentence boundaries.

    docs: of a batch.
    predicates: for each doc, tokens.
    reach: number of tokens on each side of the predicate, at most.
    """
    rows = []
    for number, (doc, tokens) in enumerate(zip(docs, predicates)):
        bounds = _sentences(doc) if tokens else []
        for token in tokens:
            start, end = bounds[token]
            rows.append(Row(number, token, max(start, token - reach), min(end, token + reach + 1)))
    return rows


def _sentences(doc: Doc) -> list[tuple[int, int]]:
    """Return start and end of each token's sentence."""
    if not doc.has_annotation("SENT_START"):
        return [(0, len(doc))] * len(doc)
    return [(sentence.start, sentence.end) for sentence in doc.sents for _ in sentence]


def batches_of(rows: Sequence[Row], max_tokens: int) -> Iterator[list[int]]:
    """Divide rows into batches of similar lengths, the longest first. Return their numbers.

    max_tokens: number of tokens in a batch with its padding, at most; a row may be longer.
    """
    order = sorted(range(len(rows)), key=lambda number: rows[number].start - rows[number].end)
    batch: list[int] = []
    for number in order:
        longest = rows[(batch or [number])[0]]
        if batch and (longest.end - longest.start) * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
