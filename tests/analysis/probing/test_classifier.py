"""The classifier is at the minimum of its loss, computed in NumPy in float64."""

import numpy as np
import pytest
import torch

from spacy_elmo.analysis import probing as classifier
from spacy_elmo.analysis.probing import L2, LinearClassifier, fit


def gradients(fitted: LinearClassifier, x: np.ndarray, labels: np.ndarray, l2: float) -> tuple[np.ndarray, np.ndarray]:
    """Of the mean of -log p and of the penalty, by the weights and by the bias."""
    standardised = (x - x.mean(0)) / x.std(0, ddof=1)
    weight = fitted.weight.numpy().astype(np.float64)
    scores = standardised @ weight.T + fitted.bias.numpy()
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(x)), labels] -= 1
    return p.T @ standardised / len(x) + 2 * l2 * weight, p.mean(0)


@pytest.mark.parametrize(("scores", "l2"), [(1 << 25, L2), (22, L2), (22, 0.1)])
def test_the_gradient_is_zero(scores: int, l2: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "_SCORES", scores)  # 22: seven rows of three labels
    monkeypatch.setattr(classifier, "L2", l2)
    random = np.random.default_rng(0)
    x = random.normal(3, 2, (60, 4))
    labels = random.integers(0, 3, 60)
    fitted = fit(torch.tensor(x, dtype=torch.float32), torch.tensor(labels), 3)
    for gradient in gradients(fitted, x, labels, l2):
        assert np.abs(gradient).max() < 1e-4
    expected = (x - x.mean(0)) / x.std(0, ddof=1) @ fitted.weight.numpy().T + fitted.bias.numpy()
    assert fitted.predict(torch.tensor(x, dtype=torch.float32)).tolist() == expected.argmax(1).tolist()


def test_the_features_are_not_changed() -> None:
    x = torch.tensor([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    fitted = fit(x, torch.tensor([0, 1, 1]), 2)
    assert x.tolist() == [[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]
    assert fitted.predict(x).tolist() == [0, 1, 1]
    assert fitted.predict(x[:0]).tolist() == []


def test_one_row() -> None:
    fitted = fit(torch.ones(1, 2), torch.tensor([1]), 2)
    assert fitted.predict(torch.ones(1, 2)).tolist() == [1]
