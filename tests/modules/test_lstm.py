"""The LSTM layers: the scan and its gradients against autograd over the plain cell in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_lstm import CLIPS, assert_computes_the_layer, drawn, parts_of
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import lstm
from spacy_elmo.modules.lstm import lstm_scan
from spacy_elmo.modules.lstm_cell import Clips


@pytest.fixture(params=["torch", "compiled", "gpu in torch", "gpu"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test in torch, with the compiled cell, and with all directions at once, as on a GPU.

    That runs in torch on the CPU, and with its kernels on a GPU.
    """
    if request.param == "gpu" and not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch sees")
    if request.param == "gpu in torch":
        monkeypatch.setattr(lstm, "runs_at_once", lambda _: True)
    if not request.param.startswith("gpu"):
        library = request.getfixturevalue("compiled") if request.param == "compiled" else None
        monkeypatch.setattr(kernels, "load", lambda: library)
    return str(request.param)


@pytest.mark.parametrize("precision", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("projection", [True, False], ids=["projection", "none"])
@pytest.mark.parametrize("clips", CLIPS, ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_gradients(loops: str, precision: torch.dtype, projection: bool, clips: Clips, directions: int) -> None:
    if loops == "compiled" and precision == torch.float64:
        return  # this type does not run there
    device = "cuda" if loops == "gpu" else "cpu"
    assert_computes_the_layer(lstm_scan, drawn(directions, projection), None, clips, precision, device=device)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("projection", "clips", "outputs"),
    [
        (True, Clips(None, None), [0, 1]),
        (False, Clips(None, None), [0, 1]),
        (False, Clips(0.5, 0.3), [0, 1]),
        (True, Clips(0.5, 0.3), [0, 1]),
        (True, Clips(0.5, 0.3), [0]),  # a gradient of h only
        (True, Clips(0.5, 0.3), [1]),  # a gradient of c only
    ],
)
def test_numeric_gradients(projection: bool, clips: Clips, outputs: list[int]) -> None:
    sizes = [(2, 4, 2, 2), (2, 2, 12), (2, 2, 12), (2, 12), (2, 2, 2), (2, 2, 3), (2, 3, 2)]
    if not projection:
        sizes = [(2, 4, 2, 2), (2, 2, 12), (2, 3, 12), (2, 12), (2, 2, 3), (2, 2, 3)]
    rng = np.random.default_rng(0)
    inputs = [torch.from_numpy(rng.normal(0, 0.8, size)).requires_grad_() for size in sizes]

    def function(*given: Tensor) -> list[Tensor]:
        results = lstm_scan(*parts_of(list(given)), clips)
        return [results[k] for k in outputs]

    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.usefixtures("cell")
def test_two_backward_passes_and_no_second_derivative() -> None:
    """The first backward pass must not change the tape. It is not recorded, and the error says so."""
    inputs = [part.float().requires_grad_() for part in drawn(2, True).inputs]
    hidden, cells = lstm_scan(*parts_of(inputs), Clips(1.0, 0.5))
    loss = hidden.sin().sum() + cells.cos().sum()
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    for got, expected in zip(torch.autograd.grad(loss, inputs, create_graph=True), first, strict=True):
        assert torch.equal(got, expected)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            got.square().sum().backward(retain_graph=True)


@pytest.mark.parametrize("skip", [False, True])
def test_the_skip_connection_adds_the_input_after_dropout(skip: bool) -> None:
    """In bilm-tf, DropoutWrapper(input_keep_prob) is around ResidualWrapper(cell), which the first layer does not have.

    With weights of 0 a cell gives 0, so that each layer but the first gives its dropped input. Dropout adds 3 here.
    """
    options = BiLMOptions(3, ((1, 4),), 0, "relu", 12, 5, 4, 3, 3.0, 3.0, skip)
    layers = lstm.BiLstm(options)
    for parameter in layers.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.ones(2, 6, 1, 4)
    outputs, hidden, _ = lstm.scan_layers(options, layers.weights(), x, layers.zero_state(1), drop=lambda x: x + 3)
    assert [output.unique().tolist() for output in outputs] == ([[0.0], [3.0], [6.0]] if skip else [[0.0]] * 3)
    assert not any(h.any() for h in hidden)
