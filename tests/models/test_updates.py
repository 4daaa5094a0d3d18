"""An optimizer's update of a torch network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from thinc.api import Adam, Optimizer
from torch import nn

from spacy_elmo.models.shim import apply_gradients


def updated(network: nn.Module, optimizer: Optimizer, times: int) -> list[np.ndarray]:
    """The weight after each of some updates with gradients of 1."""
    weights = []
    for _ in range(times):
        network.weight.grad = torch.ones_like(network.weight)
        apply_gradients(network, 7, optimizer, 1.0, lambda: None)
        weights.append(network.weight.detach().numpy().copy())
    return weights


@pytest.mark.parametrize("frozen", [0, 5])
def test_averages_begin_with_the_weights(frozen: int) -> None:
    """Those of a weight that training reaches late, too: with gradual unfreezing, for example."""
    network, other = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
    first, optimizer = network.weight.detach().numpy().copy(), Adam(0.1, use_averages=True)
    for _ in range(frozen):  # the optimizer has seen other weights
        other.weight.grad = torch.ones_like(other.weight)
        apply_gradients(other, 8, optimizer, 1.0, lambda: None)
    expected = first.astype(np.float64)
    for t, weights in enumerate(updated(network, optimizer, 4), 1):
        decay = (1 + t) / (10 + t)  # Thinc's, which is that of TensorFlow's ExponentialMovingAverage with num_updates
        expected = decay * expected + (1 - decay) * weights
    np.testing.assert_allclose(optimizer.averages[7, "weight"], expected, rtol=1e-5)


def test_an_optimizer_without_averages() -> None:
    optimizer = Adam(0.1, use_averages=False)
    updated(nn.Linear(3, 2, bias=False), optimizer, 2)
    assert optimizer.averages is None
