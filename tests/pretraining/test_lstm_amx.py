"""The LSTM on the tiles of AMX gives what torch and numpy give."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.kernels.calls import GRADIENT_GROUPS, padded
from spacy_elmo.modules.lstm import backward_steps
from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, LstmState, Scan
from spacy_elmo.pretraining import lstm_amx
from spacy_elmo.pretraining.lstm_amx import IN_ORDER, weight_gradient
from spacy_elmo.pretraining.scan import window_scan
from spacy_elmo.pretraining.workspace import Workspace

LOW = torch.bfloat16
# (steps, batch, dim, input, projection)
SIZES = [
    (1, 1, 64, 64, 64),
    (20, 1, 64, 64, 64),
    (3, 5, 128, 64, 64),
    (20, 16, 64, 128, 64),
    (3, 33, 128, 64, 128),
    (2, 256, 64, 64, 64),
    (20, 256, 64, 64, 64),
]
BINDING = Clips(0.7, 0.3)  # neither is a number of bfloat16


@pytest.fixture(autouse=True)
def amx(compiled: ctypes.CDLL) -> ctypes.CDLL:
    """The compiled loops. The test is skipped if there is no AMX."""
    if not kernels.has("amx", compiled):
        pytest.skip("this processor or system has no AMX, or the compiler did not know it")
    return compiled


class Given(NamedTuple):
    """One direction, with gradients from above."""

    x: Tensor
    w_x: Tensor
    w_h: Tensor
    bias: Tensor
    w_p: Tensor
    h0: Tensor
    c0: Tensor
    keep: Tensor
    d_hidden: Tensor
    d_cells: Tensor


def drawn(steps: int, batch: int, dim: int, n_in: int, width: int, forget: bool = True) -> Given:
    rng = np.random.default_rng(steps * batch * dim)

    def normal(*shape: int, by: float = 1.0) -> Tensor:
        return torch.from_numpy(rng.normal(0, by, shape).astype(np.float32))

    return Given(
        normal(1, steps, batch, n_in),
        normal(1, n_in, 4 * dim, by=n_in**-0.5),
        normal(1, width, 4 * dim, by=width**-0.5),
        normal(1, 4 * dim, by=0.1),
        normal(1, dim, width, by=2 * dim**-0.5),
        normal(1, batch, width),
        normal(1, batch, dim),
        (torch.from_numpy(rng.random((steps, batch, 1))) > 0.1).float() if forget else torch.ones(steps, batch, 1),
        normal(1, steps, batch, width),
        normal(1, steps, batch, dim),
    )


def run(given: Given, clips: Clips, products: torch.dtype = LOW, workspace: Workspace | None = None) -> list[Tensor]:
    """h, the last c and the gradients of x, w_x, w_h, bias, w_p, h0, c0."""
    inputs = [tensor.clone().requires_grad_() for tensor in given[:7]]
    x, *weights, h0, c0 = inputs
    h, c = window_scan(
        x,
        LayerWeights(*weights),
        LstmState(h0, c0),
        clips,
        keep=given.keep,
        matmul_dtype=products,
        workspace=Workspace() if workspace is None else workspace,
    )
    loss = (h * given.d_hidden).sum() + (c * given.d_cells[:, -1:]).sum()
    return [h.detach(), c.detach(), *torch.autograd.grad(loss, inputs)]


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got.double() - expected.double()).norm() / expected.double().norm().clamp(min=1e-6))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("clips", [Clips(None, None), Clips(3.0, 3.0), BINDING], ids=str)
def test_values_and_gradients_are_near_those_of_float64(sizes: tuple[int, ...], forget: bool, clips: Clips) -> None:
    """torch computes in float64, so the differences are the rounding to bfloat16."""
    given = drawn(*sizes, forget=forget)
    got, expected = run(given, clips), run(Given(*(part.double() for part in given)), clips, torch.float64)
    for made, wanted in zip(got[:2], expected[:2], strict=True):
        assert made.shape == wanted.shape
        assert relative(made, wanted) <= 0.01
    if clips == BINDING:
        assert (got[0].abs() >= 0.3).float().mean() > 0.1
        assert (got[1].abs() == torch.tensor(0.7)).float().mean() > 0.1
        return  # what is near a bound may fall on either side: see test_backward_pass_over_the_same_tape
    for made, wanted in zip(got[2:], expected[2:], strict=True):
        assert made.shape == wanted.shape
        assert relative(made, wanted) <= 0.016


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("clips", [Clips(None, None), BINDING], ids=str)
@pytest.mark.parametrize("above", ["hidden", "cells", "last cell", "all"])
def test_backward_pass_over_the_same_tape(sizes: tuple[int, ...], clips: Clips, above: str) -> None:
    """torch runs the backward pass in float64 over the tape of AMX, so that only the gradients are rounded."""
    given = drawn(*sizes)
    steps, batch, dim, n_in, width = sizes
    rows = padded(batch)
    weight, w_p = torch.cat([given.w_x[0], given.w_h[0]]).to(LOW), given.w_p[0].to(LOW)
    scan = Scan(
        torch.full((steps, rows, n_in + width), torch.nan, dtype=LOW),
        torch.full((steps, rows, 4 * dim), torch.nan, dtype=LOW),
        torch.full((steps, rows, dim), torch.nan, dtype=LOW),
        torch.full((steps + 1, rows, dim), torch.nan),
        torch.full((steps + 1, rows, width), torch.nan, dtype=LOW),
        *(weight, given.bias[0], w_p, given.keep, given.keep),
    )
    scan.inputs[:, :batch, :n_in], scan.hidden[0, :batch] = given.x[0], given.h0[0]
    lstm_amx.by_rows(scan.cells)[0, :batch] = given.c0[0].view(batch, -1, 16)
    lstm_amx.forward(scan, clips, batch, Workspace())
    # row by row: gates [dim / 16][i, j or f, o][rows][2][16], outs [dim / 32][rows][32]
    gates = scan.gates.view(steps, dim // 16, 2, rows, 2, 16).permute(0, 3, 2, 4, 1, 5).reshape(steps, rows, 4 * dim)
    outs = scan.outs.view(steps, dim // 32, rows, 32).transpose(1, 2).flatten(2)
    tape = scan.inputs, gates, outs, lstm_amx.by_rows(scan.cells).flatten(2), scan.hidden
    plain = Scan(
        *(part[None, :, :batch].double().contiguous() for part in tape),
        *(weight[None].double(), given.bias.double(), w_p[None].double(), given.keep.double(), given.keep.double()),
    )
    d_hidden = given.d_hidden[0] if above in ("hidden", "all") else None
    d_cells = None if above == "hidden" else given.d_cells[0, -1:] if above == "last cell" else given.d_cells[0]
    bounds = Clips(
        None if clips.cell is None else float(torch.tensor(clips.cell)),
        None if clips.proj is None else float(torch.tensor(clips.proj, dtype=LOW)),
    )
    expected = backward_steps(
        plain,
        bounds,
        None if d_hidden is None else d_hidden[None].double(),
        None if d_cells is None else d_cells[None].double(),
    )
    got = lstm_amx.backward(scan, clips, d_hidden, d_cells, batch, Workspace())
    for made, wanted in zip(got, expected, strict=True):
        assert made is not None
        assert wanted is not None
        assert made.shape == wanted.shape[1:]
        assert made.dtype == torch.float32
        assert relative(made, wanted[0]) <= 0.008


@pytest.mark.parametrize(("steps", "rows", "m", "n"), [(1, 32, 64, 64), (3, 64, 128, 192), (5, 96, 64, 1088)])
def test_weight_gradient(amx: ctypes.CDLL, steps: int, rows: int, m: int, n: int) -> None:
    """Exact except for the rounding of sums in float32. What the work array contained before makes no difference."""
    rng = np.random.default_rng(n)
    left, right = (torch.from_numpy(rng.normal(size=(steps * rows, k))).to(LOW) for k in (m, n))
    blocked = right.view(steps, rows, n // 32, 32).transpose(1, 2).reshape(steps, rows, n)
    workspace = Workspace()
    workspace[f"work {m}"] = torch.full((64 * GRADIENT_GROUPS, m), torch.nan)
    gradient, totals = weight_gradient(amx, left.view(steps, rows, m), blocked, IN_ORDER, workspace)
    assert workspace[f"work {m}"].isfinite().any()  # it was used
    expected = left.double().numpy().T @ right.double().numpy()
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(totals.numpy(), right.double().numpy().sum(0), rtol=0, atol=1e-4)


@pytest.mark.parametrize("gate", ["i", "j", "o"])
def test_errors_of_the_activations(gate: str) -> None:
    """One gate at a time, for all sizes of sums: the absolute error is at most 1e-5, plus the rounding to bfloat16."""
    dim = 1024
    sums = torch.linspace(-30, 30, dim)
    sums[:4] = torch.tensor([-torch.inf, torch.inf, -1e30, 1e30])
    sums[4:7] = torch.tensor([0.0, 1e-30, -88.0])
    bias = torch.zeros(1, 4, dim)
    bias[0, :3] = torch.tensor([200.0, 200.0, -200.0])[:, None]  # c = sigmoid(i) tanh(j)
    bias[0, "ijfo".index(gate)] = sums
    given = drawn(1, 1, dim, 64, 64, forget=False)
    zeros = {name: torch.zeros_like(getattr(given, name)) for name in ("x", "w_x", "w_h", "w_p", "h0", "c0")}
    zeros["w_p"][0, torch.arange(64), torch.arange(64)] = 1  # h: the first 64 outs
    h, c = run(given._replace(**zeros, bias=bias.view(1, -1)), Clips(None, None))[:2]
    x = sums.double()
    if gate == "o":
        expected = torch.sigmoid(x[:64]) * np.tanh(1.0)
        assert (h.flatten() - expected).abs().max() <= 1e-5 + 2**-9
    else:
        expected = torch.sigmoid(x) if gate == "i" else torch.tanh(x)
        assert (c.flatten() - expected).abs().max() <= 1e-5


def test_repeated_runs_and_other_threads_give_the_same_bits() -> None:
    """The values that were in the work arrays before make no difference."""
    first, second = drawn(4, 33, 128, 64, 64), drawn(5, 16, 64, 64, 128)
    expected = [run(given, BINDING) for given in (first, second)]
    workspace = Workspace()
    run(first, BINDING, workspace=workspace)
    for array in workspace.values():
        array.fill_(torch.nan)
    for got, wanted in zip(run(first, BINDING, workspace=workspace), expected[0], strict=True):
        assert torch.equal(got, wanted)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            results = pool.map(lambda given: run(given, BINDING), (first, second))
            for pairs in zip(results, expected, strict=True):
                assert all(torch.equal(got, wanted) for got, wanted in zip(*pairs, strict=True))


def test_nan_spreads_to_its_own_row_only() -> None:
    given = drawn(4, 33, 64, 64, 64, forget=False)
    before = run(given, Clips(3.0, 3.0))
    given.x[0, 2, 7, 5] = torch.nan
    after = run(given, Clips(3.0, 3.0))
    others = torch.arange(33) != 7
    damaged, last = after[0][0].isnan(), after[1][0, 0].isnan()
    assert damaged[2:, 7].all()
    assert last[7].all()
    assert not damaged[:2].any()
    assert not damaged[:, others].any()
    assert not last[others].any()
    assert torch.equal(after[0][:, :2], before[0][:, :2])
    assert all(gradient.isnan().any() for gradient in after[2:])
    assert torch.equal(after[2][:, :, others], before[2][:, :, others])


@pytest.mark.parametrize(
    ("sizes", "products", "runs"),
    [
        ((2, 3, 64, 64, 64), LOW, True),
        ((2, 3, 64, 64, 64), torch.float32, False),
        ((2, 3, 48, 64, 64), LOW, False),
        ((2, 3, 64, 32, 64), LOW, False),
        ((2, 3, 64, 64, 96), LOW, False),
    ],
    ids=str,
)
def test_which_sizes_and_types_use_amx(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], products: torch.dtype, runs: bool
) -> None:
    given = drawn(*sizes)
    assert lstm_amx.fits(given.x, given.h0, given.c0, given.w_p, products) is runs
    monkeypatch.setattr(kernels, "load", lambda: None)
    assert not lstm_amx.fits(given.x, given.h0, given.c0, given.w_p, products)
