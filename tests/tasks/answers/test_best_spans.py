"""The best spans, against all spans tried one by one."""

import numpy as np
import pytest

from spacy_elmo.tasks.answers.component import best_spans


def all_spans(scores: np.ndarray, allowed: np.ndarray, longest: int) -> list[tuple[float, int, int]]:
    weights = np.exp(scores.astype(float)) * allowed[:, None]
    p = weights / weights.sum(axis=0)
    spans = [
        (p[i, 0] * p[j, 1], i, j + 1)
        for i in range(len(p))
        for j in range(i, min(i + longest, len(p)))
        if allowed[i] and allowed[j]
    ]
    return sorted(spans, key=lambda span: (-span[0], span[1], span[2]))


@pytest.mark.parametrize("tokens", [1, 2, 7, 30])
@pytest.mark.parametrize("longest", [1, 3, 100])
@pytest.mark.parametrize("count", [1, 4, 1000])
def test_as_brute_force(tokens: int, longest: int, count: int) -> None:
    rng = np.random.default_rng(tokens)
    scores = rng.normal(size=(tokens, 2)).astype("f") * 3
    allowed = rng.random(tokens) < 0.8
    allowed[0] = True
    expected = all_spans(scores, allowed, longest)[:count]
    got = best_spans(scores, allowed, longest, count)
    assert [(best.start, best.end) for best in got] == [(start, end) for _, start, end in expected]
    np.testing.assert_allclose([best.score for best in got], [score for score, _, _ in expected], rtol=1e-6)


def test_equal_spans_come_in_the_order_of_the_text() -> None:
    got = best_spans(np.zeros((3, 2), "f"), np.ones(3, bool), 2, 4)
    assert [(best.start, best.end) for best in got] == [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert all(best.score == pytest.approx(1 / 9) for best in got)


def test_nowhere_to_start() -> None:
    assert best_spans(np.zeros((3, 2), "f"), np.zeros(3, bool), 2, 4) == []
    assert best_spans(np.zeros((0, 2), "f"), np.zeros(0, bool), 2, 4) == []
