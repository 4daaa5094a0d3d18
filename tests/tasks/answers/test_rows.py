"""Rows of the network: windows of contexts, and the words that question and context share."""

from itertools import pairwise

import numpy as np
import pytest
import spacy

from spacy_elmo.tasks.answers.model import Row, batches_of, rows_of, shared_words
from spacy_elmo.tasks.answers.questions import make_question, question_of

NLP = spacy.blank("en")


@pytest.mark.parametrize("tokens", [1, 9, 10, 11, 17, 18, 40])
@pytest.mark.parametrize("overlap", [0, 1, 3, 9])
def test_windows_give_each_token_once(tokens: int, overlap: int) -> None:
    doc = make_question(NLP, "Who is it", " ".join(["word"] * tokens))
    rows = rows_of([None, question_of(doc)], 10, overlap)
    assert {row.doc for row in rows} == {1}
    assert all(row.question.tolist() == [0, 1, 2] and len(row.window) <= 10 for row in rows)
    used = [i for row in rows for i in row.window[row.used].tolist()]
    assert used == list(range(4, 4 + tokens))
    assert [i for row in rows for i in range(row.place.start, row.place.stop)] == list(range(tokens))
    for row, following in pairwise(rows):
        assert len(np.intersect1d(row.window, following.window)) == overlap
        assert len(row.window) - row.used.stop == overlap // 2


def test_shared_words() -> None:
    doc = make_question(NLP, "Where is Bonn ?", "bonn is big . Is it ?")
    (row,) = rows_of([question_of(doc)], 100, 0)
    assert shared_words(doc, row).tolist() == [0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0]


def test_batches_have_a_bound() -> None:
    sizes = [(3, 50), (40, 5), (1, 1), (3, 48), (300, 7), (2, 50)]
    rows = [Row(i, np.arange(q), np.arange(c), slice(0, c), slice(0, c)) for i, (q, c) in enumerate(sizes)]
    batches = batches_of(rows, 6000)
    assert sorted(row.doc for batch in batches for row in batch) == list(range(len(rows)))
    for batch in batches:
        question, window = max(len(row.question) for row in batch), max(len(row.window) for row in batch)
        assert len(batch) == 1 or len(batch) * window * (window + question) <= 6000
    assert len(batches) < len(rows)
    assert batches_of([], 10) == []
