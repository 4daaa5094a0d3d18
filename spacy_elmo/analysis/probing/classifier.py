"""A linear classifier: multinomial logistic regression."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

L2 = 1e-5  # on standardised features, beside the mean loss of a token
ITERATIONS = 100
_SCORES = 1 << 25  # computed at a time (rows times labels), so that memory does not grow with their number


class LinearClassifier(NamedTuple):
    """Weights on standardised features.

    mean, std: of the features, *Shape:* (width,).
    weight, bias: *Shape:* (labels, width) and (labels,).
    """

    mean: Tensor
    std: Tensor
    weight: Tensor
    bias: Tensor

    def predict(self, x: Tensor) -> Tensor:
        """Return the most probable label of each row. x: *Shape:* (rows, width). Returns *Shape:* (rows,)."""
        parts = x.split(_rows(len(self.bias)))
        return torch.cat(
            [F.linear((part - self.mean).div_(self.std), self.weight, self.bias).argmax(1) for part in parts]
        )


def fit(x: Tensor, labels: Tensor, classes: int, iterations: int = ITERATIONS) -> LinearClassifier:
    """Train a classifier with L-BFGS. The loss is convex and starts from zero weights, so no seed is needed.

    x: features, not changed, *Shape:* (rows, width), one row or more.
    labels: numbers from 0, *Shape:* (rows,).
    classes: how many labels there are.
    iterations: of L-BFGS, the most that are made.
    """
    mean, std = x.mean(0), x.std(0, correction=min(1, len(x) - 1)).clamp_min(1e-6)
    standardised = (x - mean).div_(std)
    rows = _rows(classes)
    weight = torch.zeros(classes, x.shape[1], requires_grad=True)
    bias = torch.zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias], max_iter=iterations, history_size=20, tolerance_change=1e-7, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        total = L2 * weight.square().sum()
        total.backward()
        for part, numbers in zip(standardised.split(rows), labels.split(rows)):
            loss = F.cross_entropy(F.linear(part, weight, bias), numbers, reduction="sum") / len(x)
            loss.backward()
            total = total.detach() + loss.detach()
        return total

    optimizer.step(closure)
    return LinearClassifier(mean, std, weight.detach(), bias.detach())


def _rows(classes: int) -> int:
    """Return how many rows are scored at a time."""
    return max(1, _SCORES // classes)
