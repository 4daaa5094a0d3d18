"""Which sentences run together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.inference import token_batches


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "expected"),
    [
        ([], 10, []),
        ([5], 10, [[0]]),
        ([2, 3, 4], 100, [[2, 1, 0]]),
        ([4, 4, 4], 8, [[0, 1], [2]]),
        ([1, 50, 2], 10, [[1], [2, 0]]),  # too long for the budget: alone
        ([50, 60], 10, [[1], [0]]),
        ([0, 3, 0], 3, [[1, 0, 2]]),
        ([0, 0], 1, [[0, 1]]),
    ],
)
def test_cases(lengths: list[int], max_tokens: int, expected: list[list[int]]) -> None:
    assert token_batches(lengths, max_tokens) == expected


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 60))
def test_every_sentence_once_within_the_budget(lengths: list[int], max_tokens: int) -> None:
    batches = token_batches(lengths, max_tokens)
    order = [i for batch in batches for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert sum(lengths[i] for i in batch) <= max_tokens or sum(lengths[i] > 0 for i in batch) == 1
    for batch, after in pairwise(batches):
        assert sum(lengths[i] for i in batch) + lengths[after[0]] > max_tokens


def test_128_sentences_of_60_tokens_are_one_batch_of_8192() -> None:
    assert len(token_batches([60] * 128, 8192)) == 1
