"""The gradients of the scan in all combinations of its settings, against autograd over the plain cell in torch."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.modules import lstm, lstm_amx
from spacy_elmo.modules.lstm import lstm_scan
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, LstmState

STEPS, BATCH, INPUT, DIM, WIDTH = 5, 9, 64, 128, 64  # sizes that the loops on AMX accept
LOW = torch.bfloat16
# both bind, and bfloat16 has both numbers
CLIPS = [Clips(None, None), Clips(0.75, None), Clips(None, 0.5), Clips(0.75, 0.5)]
# of the relative error in the root mean square. The reference is float64, and rounds as bfloat16 does if the scan does.
BOUNDS = {torch.float32: 5e-6, LOW: 0.016}


@pytest.fixture(params=["torch", "compiled", "amx", "gpu in torch", "gpu"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test in torch, with the compiled cell, with the compiled layer on AMX, and with the scan for GPUs.

    That one runs in torch on the CPU, and with its kernels on a GPU.
    """
    if request.param == "gpu" and not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch sees")
    if request.param == "gpu in torch":
        monkeypatch.setattr(lstm, "runs_at_once", lambda _: True)
    if request.param.startswith("gpu"):
        return str(request.param)
    library: ctypes.CDLL | None = None if request.param == "torch" else request.getfixturevalue("compiled")
    if request.param == "amx" and not kernels.has_amx(library):
        pytest.skip("this processor or system has no AMX, or the compiler did not know it")
    if request.param == "compiled":
        monkeypatch.setattr(lstm_amx, "fits", lambda *_: False)
    monkeypatch.setattr(kernels, "load", lambda: library)
    return str(request.param)


class Given(NamedTuple):
    """What a scan reads, in float64, and the gradients of its results."""

    inputs: list[Tensor]
    d_hidden: Tensor
    d_cells: Tensor


def drawn(directions: int, projection: bool) -> Given:
    """The inputs are x, w_x, w_h, bias, h0, c0 and, if there is one, w_p."""
    rng = np.random.default_rng(3)
    width = WIDTH if projection else DIM

    def normal(*shape: int, by: float = 1.0) -> Tensor:
        # numbers that float32 has
        return torch.from_numpy(rng.normal(0, by, (directions, *shape)).astype(np.float32)).double()

    inputs = [
        normal(STEPS, BATCH, INPUT),
        normal(INPUT, 4 * DIM, by=INPUT**-0.5),
        normal(width, 4 * DIM, by=width**-0.5),
        normal(4 * DIM, by=0.1),
        normal(BATCH, width, by=0.5),
        normal(BATCH, DIM),
    ]
    inputs += [normal(DIM, WIDTH, by=2 * DIM**-0.5)] if projection else []
    return Given(inputs, normal(STEPS, BATCH, width), normal(STEPS, BATCH, DIM))


def plain(inputs: list[Tensor], keep: Tensor | None, clips: Clips, low: bool, low_sums: bool) -> tuple[Tensor, Tensor]:
    """The layer in torch's own operations.

    low: round what the matrix multiplications read, and the outputs, to bfloat16.
    low_sums: round the sums of the gates, too.
    """

    def rounded(x: Tensor, low: bool = low) -> Tensor:
        return x + (x.to(LOW).double() - x).detach() if low else x

    def clipped(x: Tensor, bound: float | None) -> Tensor:
        if bound is None:
            return x
        # rounded numbers are often the bound itself. No gradient passes there
        return torch.where(x.abs() >= bound, x.detach().clamp(-bound, bound), x)

    x, w_x, w_h, bias, h, c = inputs[:6]
    hidden, cells = [], []
    h, matrices = rounded(h), [rounded(matrix) for matrix in (w_x, w_h, *inputs[6:])]
    for t in range(STEPS):
        if keep is not None:
            h, c = h * keep[t], c * keep[t]
        sums = rounded(rounded(x[:, t]) @ matrices[0] + h @ matrices[1], low_sums)
        i, j, f, o = (sums + bias[:, None]).chunk(4, 2)
        c = clipped(torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j), clips.cell)
        h = rounded(torch.sigmoid(o) * torch.tanh(c))
        if len(matrices) == 3:
            h = clipped(rounded(h @ matrices[2]), clips.proj)
        hidden.append(h)
        cells.append(c)
    return torch.stack(hidden, 1), torch.stack(cells, 1)


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("precision", list(BOUNDS), ids=str)
@pytest.mark.parametrize("projection", [True, False], ids=["projection", "none"])
@pytest.mark.parametrize("clips", CLIPS, ids=str)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("forget", [False, True], ids=["kept", "forgotten"])
def test_gradients(
    loops: str, precision: torch.dtype, projection: bool, clips: Clips, directions: int, forget: bool
) -> None:
    given = drawn(directions, projection)
    if loops == "amx" and (precision != LOW or not projection):
        return  # these sizes and types do not run there
    keep = ((torch.arange(STEPS)[:, None] + torch.arange(BATCH)) % 4 > 0).double()[..., None] if forget else None
    exact = [tensor.clone().requires_grad_() for tensor in given.inputs]
    low = precision == LOW
    expected = plain(exact, keep, clips, low, low and loops != "amx")
    device = "cuda" if loops == "gpu" else "cpu"
    ours = [tensor.float().to(device).requires_grad_() for tensor in given.inputs]
    x, w_x, w_h, bias, h0, c0, *w_p = ours
    weights = LayerWeights(w_x, w_h, bias, w_p[0] if w_p else None)
    kept = None if keep is None else keep.float().to(device)
    got = lstm_scan(x, weights, LstmState(h0, c0), kept, clips, matmul_dtype=precision)
    for made, wanted in zip(got, expected, strict=True):
        assert made.dtype == torch.float32
        assert relative(made.detach().cpu(), wanted.detach()) <= BOUNDS[precision]
    if clips.cell is not None:
        assert (expected[1].abs() == clips.cell).double().mean() > 0.1
    if clips.proj is not None and projection:
        assert (expected[0].abs() == clips.proj).double().mean() > 0.1
    # a rounded output may be clipped here and not there, and then its gradient stops here and not there
    bound = BOUNDS[precision] * (2 if low and clips.proj is not None else 1)
    d_hidden, d_cells = given.d_hidden.float().to(device), given.d_cells.float().to(device)
    ((got[0] * d_hidden).sum() + (got[1] * d_cells).sum()).backward()
    ((expected[0] * given.d_hidden).sum() + (expected[1] * given.d_cells).sum()).backward()
    for made, wanted in zip(ours, exact, strict=True):
        assert made.grad is not None
        assert wanted.grad is not None
        assert made.grad.dtype == torch.float32
        assert relative(made.grad.cpu(), wanted.grad) <= bound
