"""The output layer's loss over all words, and its initial values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from bilm_cases import largest_difference
from torch import Tensor

from spacy_elmo.modules import softmax as softmax
from spacy_elmo.modules.softmax import Softmax

WORDS, WIDTH = 12, 4


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, scale, shape))


@pytest.mark.parametrize("rows", [0, 1, 5, 12])
def test_full_loss(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(softmax, "BLOCK_ROWS", 5)
    layer = Softmax(WORDS, WIDTH).double()
    probabilities = torch.linspace(0.2, 0.01, WORDS, dtype=torch.float64)
    layer.reset_parameters(probabilities.log(), torch.Generator().manual_seed(0))
    assert largest_difference(layer.bias.detach(), probabilities.log()) == 0
    x, targets = drawn(rows, WIDTH), torch.arange(rows) * 5 % WORDS
    logits = (x @ layer.weight.t() + layer.bias).detach()
    losses = layer.loss(x, targets)
    assert losses.shape == (rows,)
    assert not losses.requires_grad
    if rows:
        assert largest_difference(losses, F.cross_entropy(logits, targets, reduction="none")) <= 1e-12


def test_initial_values_are_those_of_bilm_tf() -> None:
    layer = Softmax(4000, 16)
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    assert not layer.bias.any()
    assert abs(float(layer.weight.detach().std()) - 0.25) < 0.005
    assert abs(float(layer.weight.detach().mean())) < 0.005
