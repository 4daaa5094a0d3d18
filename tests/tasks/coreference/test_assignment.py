"""The best one-to-one assignment, against all assignments."""

from itertools import permutations

import numpy as np
import pytest

from spacy_elmo.tasks.coreference.scorer import best_total


@pytest.mark.parametrize("seed", range(12))
def test_against_all_assignments(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows, columns = draw.integers(1, 7, size=2)
    matrix = draw.random((rows, columns)) * (draw.random((rows, columns)) < 0.6)
    square = np.zeros((7, 7))
    square[:rows, :columns] = matrix
    best = max(square[np.arange(7), list(order)].sum() for order in permutations(range(7)))
    pairs = {(int(row), int(column)): matrix[row, column] for row, column in np.argwhere(matrix)}
    assert best_total(pairs) == pytest.approx(best)


def test_without_pairs() -> None:
    assert best_total({}) == 0


def test_separate_blocks() -> None:
    assert best_total({(number, number + 5000): 1.0 for number in range(2000)}) == 2000
