"""The scan of pretraining: values and gradients against autograd over the plain cell, and what is used again."""

from __future__ import annotations

import ctypes

import pytest
import torch
from plain_lstm import BOUNDS, CLIPS, LOW, STEPS, assert_computes_the_layer, drawn, forgetting, parts_of
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.modules import lstm
from spacy_elmo.modules.lstm_cell import Clips
from spacy_elmo.pretraining import lstm_amx, workspace
from spacy_elmo.pretraining.scan import window_scan, window_scans
from spacy_elmo.pretraining.workspace import Workspace


@pytest.fixture(params=["torch", "compiled", "amx", "gpu in torch", "gpu"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test in torch, with the compiled cell, with the compiled layer on AMX, and with the scan for GPUs.

    That one runs in torch on the CPU, and with its kernels on a GPU.
    """
    if request.param == "gpu" and not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch sees")
    if request.param == "gpu in torch":
        monkeypatch.setattr(lstm, "runs_at_once", lambda _: True)
        monkeypatch.setattr(workspace, "Replayed", lambda function: function)
    if request.param.startswith("gpu"):
        return str(request.param)
    library: ctypes.CDLL | None = None if request.param == "torch" else request.getfixturevalue("compiled")
    if request.param == "amx" and not kernels.has("amx", library):
        pytest.skip("this processor or system has no AMX, or the compiler did not know it")
    if request.param == "compiled":
        monkeypatch.setattr(lstm_amx, "fits", lambda *_: False)
    monkeypatch.setattr(kernels, "load", lambda: library)
    return str(request.param)


@pytest.mark.parametrize("precision", list(BOUNDS), ids=str)
@pytest.mark.parametrize("projection", [True, False], ids=["projection", "none"])
@pytest.mark.parametrize("clips", CLIPS, ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_gradients(loops: str, precision: torch.dtype, projection: bool, clips: Clips, directions: int) -> None:
    if (loops == "amx" and (precision != LOW or not projection)) or (
        loops == "compiled" and precision == torch.float64
    ):
        return  # these sizes and types do not run there
    low, device = precision == LOW, "cuda" if loops == "gpu" else "cpu"
    keep = forgetting()
    (scan,) = window_scans(keep.to(device, torch.float32 if low else precision), precision, [Workspace()])
    low_sums = low and loops != "amx"
    given = drawn(directions, projection)
    assert_computes_the_layer(scan, given, keep, clips, precision, device=device, low_sums=low_sums)


def scanned(
    inputs: list[Tensor], clips: Clips, products: torch.dtype, used: Workspace, keep: Tensor
) -> tuple[Tensor, Tensor]:
    """What `window_scan` returns of the inputs of `drawn`."""
    return window_scan(*parts_of(inputs), clips, keep=keep, matmul_dtype=products, workspace=used)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("products", [torch.float32, LOW], ids=str)
@pytest.mark.parametrize("directions", [1, 2])
def test_a_used_workspace_gives_the_same_bits(products: torch.dtype, directions: int) -> None:
    """Calls with other values and other sizes in between leave nothing that a later call reads."""
    used = Workspace()
    for rows, scale in ((9, 1.0), (9, -2.0), (7, 1.0), (9, 0.5)):
        results = []
        for each in (used, Workspace()):
            x, w_x, w_h, bias, h0, c0, w_p = (part.float() for part in drawn(directions, True).inputs)
            x, h0, c0 = (part[..., :rows, :] * scale for part in (x, h0, c0))
            leaves = [part.requires_grad_() for part in (x, w_x, w_h, bias, h0, c0, w_p)]
            hidden, cells = scanned(leaves, Clips(1.0, 0.5), products, each, forgetting(STEPS, rows).float())
            values = [hidden.detach().clone(), cells.detach().clone()]
            results.append([*values, *torch.autograd.grad(hidden.sin().sum() + cells.cos().sum(), leaves)])
        for got, expected in zip(*results, strict=True):
            assert torch.equal(got, expected)
    assert used


def test_an_array_is_used_again_if_its_shape_and_type_fit() -> None:
    used, like = Workspace(), torch.zeros(1)
    first = used.array("x", like, torch.float32, 2, 3)
    assert used.array("x", like, torch.float32, 2, 3) is first
    assert used.array("y", like, torch.float32, 2, 3) is not first
    for dtype, shape in ((torch.bfloat16, (2, 3)), (torch.float32, (3, 2)), (torch.float32, (2, 3))):
        made = used.array("x", like, dtype, *shape)
        assert (made.dtype, made.shape) == (dtype, shape)
        assert made is not first
        assert used.array("x", like, dtype, *shape) is made


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("bound", [0.7, 3.0, 3.1])  # 0.7 and 3.1 are rounded down
@pytest.mark.parametrize("amx", [False, True])
def test_no_gradient_passes_a_bound_that_bfloat16_rounds(
    monkeypatch: pytest.MonkeyPatch, bound: float, amx: bool
) -> None:
    if not amx:
        monkeypatch.setattr(lstm_amx, "fits", lambda *_: False)
    inputs = [part.float() for part in drawn(1, True).inputs]
    inputs[0].requires_grad_()
    w_p = inputs[6]
    for scale, passes in ((1e8, False), (1e-4, True)):
        inputs[6] = w_p * scale
        hidden, _ = scanned(inputs, Clips(None, bound), LOW, Workspace(), torch.ones_like(forgetting()).float())
        assert ((hidden.abs() - bound).abs() < 0.02).all() is not passes
        (gradient,) = torch.autograd.grad(hidden.sum(), inputs[0])
        assert bool(gradient.any()) is passes
