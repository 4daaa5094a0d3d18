"""Spans as BIO tags, and back."""

import numpy as np

from spacy_elmo.tasks.roles.component import spans_of, tags_of

LABELS = ["ARG0", "ARG1", "V"]  # B- tags 1, 2, 3; I- tags 4, 5, 6


def test_tags() -> None:
    spans = [(0, 2, "ARG0"), (2, 3, "V"), (3, 6, "ARG1"), (6, 7, "ARG1")]
    tags = tags_of(spans, 8, LABELS)
    assert tags.tolist() == [1, 4, 3, 2, 5, 5, 2, 0]
    assert spans_of(tags, LABELS) == spans


def test_what_a_row_does_not_have() -> None:
    spans = [(-3, 1, "ARG0"), (1, 2, "ARGX"), (4, 9, "ARG1"), (9, 10, "V")]
    assert tags_of(spans, 6, LABELS).tolist() == [1, 0, 0, 0, 2, 5]


def test_no_tokens() -> None:
    assert spans_of(tags_of([], 0, LABELS), LABELS) == []
    assert spans_of(np.zeros(3, dtype=np.intp), LABELS) == []
