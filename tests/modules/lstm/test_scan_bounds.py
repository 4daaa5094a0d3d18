"""The gradient of a clipped output is 0, also if bfloat16 rounds the bound."""

from __future__ import annotations

import pytest
import torch

from spacy_elmo.modules import lstm_amx as lstm_amx
from spacy_elmo.modules.lstm import lstm_scan
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, LstmState

STEPS, BATCH, SIZE = 3, 4, 64


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("bound", [0.7, 3.0, 3.1])  # 0.7 and 3.1 are rounded down
@pytest.mark.parametrize("amx", [False, True])
def test_no_gradient_passes_a_bound(monkeypatch: pytest.MonkeyPatch, bound: float, amx: bool) -> None:
    if not amx:
        monkeypatch.setattr(lstm_amx, "fits", lambda *_: False)
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, STEPS, BATCH, SIZE), (1, SIZE, 4 * SIZE), (1, SIZE, 4 * SIZE), (1, 4 * SIZE), (1, SIZE, SIZE)]
    x, w_x, w_h, bias, w_p = (torch.randn(shape, generator=generator) for shape in shapes)
    x.requires_grad_()
    state = LstmState(torch.zeros(1, BATCH, SIZE), torch.zeros(1, BATCH, SIZE))
    for scale, passes in ((1e4, False), (1e-4, True)):
        weights = LayerWeights(w_x / 8, w_h / 8, bias, w_p * scale)
        hidden, _ = lstm_scan(x, weights, state, None, Clips(None, bound), matmul_dtype=torch.bfloat16)
        assert ((hidden.abs() - bound).abs() < 0.02).all() is not passes
        (gradient,) = torch.autograd.grad(hidden.sum(), x)
        assert bool(gradient.any()) is passes
