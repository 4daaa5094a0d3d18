"""Rows: the tokens among which the arguments of a predicate are looked for."""

from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_elmo.tasks.roles.model import Row, batches_of, rows_of


def doc(*sentences: int, bounds: bool = True) -> Doc:
    starts: list[bool | int | None] = [place == 0 for length in sentences for place in range(length)]
    return Doc(Vocab(), words=["w"] * sum(sentences), sent_starts=starts if bounds else None)


def test_sentences_bound_rows() -> None:
    docs = [doc(3, 4), doc(), doc(2, 2, bounds=False)]
    assert rows_of(docs, [[0, 6], [], [1]], 100) == [Row(0, 0, 0, 3), Row(0, 6, 3, 7), Row(2, 1, 0, 4)]


def test_reach() -> None:
    assert rows_of([doc(50)], [[0, 20, 49]], 5) == [Row(0, 0, 0, 6), Row(0, 20, 15, 26), Row(0, 49, 44, 50)]


def test_batches() -> None:
    rows = [Row(0, 0, 0, length) for length in (2, 7, 3, 7, 40, 1)]
    batches = list(batches_of(rows, 14))
    assert batches == [[4], [1, 3], [2, 0, 5]]  # the longest first; one that is too long is alone
    assert list(batches_of([], 14)) == []
