"""The compiled LSTM cell against its torch twin, and against numpy in float64."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from spacy_elmo import kernels
from spacy_elmo.kernels.calls import GATE_F, GATE_I, GATE_J, GATE_O, GATES
from spacy_elmo.modules.lstm_cell import Gates, cell_backward, cell_forward, with_forget_bias

SIZES = [(1, 1), (1, 5), (3, 16), (2, 33), (5, 64), (2, 130)]
# the activations of the two differ in their last bits only; a unit in bfloat16's last place is at most 2^-7
BOUNDS = {torch.float32: {"rtol": 2e-6, "atol": 1e-6}, torch.bfloat16: {"rtol": 2**-7, "atol": 1e-6}}
TYPES = list(BOUNDS)
Doubles = npt.NDArray[np.float64]


class Given(NamedTuple):
    """What one step, forward and back, starts from."""

    sums: Tensor
    bias: Tensor
    cell_in: Tensor
    keep: Tensor | None
    d_out: Tensor
    d_cell: Tensor
    clip: float | None


class Step(NamedTuple):
    """What one step, forward and back, fills in."""

    gates: Tensor
    cell: Tensor
    out: Tensor
    d_gates: Tensor
    d_cell: Tensor


def drawn(
    batch: int, dim: int, dtype: torch.dtype, keep: bool = True, clip: float | None = None, scale: float = 1.0
) -> Given:
    rng = np.random.default_rng(batch * dim)

    def normal(*shape: int, by: float = 1.0) -> Tensor:
        return torch.from_numpy(rng.normal(0, by, shape).astype(np.float32))

    return Given(
        normal(batch, 4 * dim, by=scale).to(dtype),
        normal(4 * dim),
        normal(batch, dim),
        torch.linspace(0, 1, batch + 1)[1:, None] if keep else None,
        normal(batch, dim).to(dtype),
        normal(batch, dim),
        clip,
    )


def step(given: Given) -> Step:
    gates, d_cell = torch.full_like(given.sums, 9.0), given.d_cell.clone()
    cell, out = torch.full_like(given.cell_in, 9.0), torch.full_like(given.d_out, 9.0)
    cell_forward(given.sums, gates, given.bias, given.cell_in, given.keep, cell, out, given.clip)
    d_gates = gates.clone()
    d_cell = cell_backward(d_gates, given.cell_in, given.keep, cell, given.d_out, d_cell, given.clip)
    return Step(gates, cell, out, d_gates, d_cell)


def assert_close(steps: tuple[Step, Step]) -> None:
    for got, expected in zip(*steps, strict=True):
        assert got.dtype == expected.dtype
        torch.testing.assert_close(got, expected, **BOUNDS[got.dtype], equal_nan=True)


@pytest.mark.parametrize(("batch", "dim"), SIZES)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("clip", [None, 0.3, 3.0])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_equals_torch(
    twice: Callable, batch: int, dim: int, keep: bool, clip: float | None, dtype: torch.dtype
) -> None:
    given = drawn(batch, dim, dtype, keep, clip)
    steps = twice(lambda: step(given))
    assert_close(steps)
    if clip == 0.3 and batch * dim >= 48:
        assert (steps[1].cell.abs() == torch.tensor(0.3)).float().mean() > 0.2


@pytest.mark.parametrize("scale", [100.0, 1e30, float("inf")])
@pytest.mark.parametrize("clip", [None, 3.0])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_saturated_gates(twice: Callable, scale: float, clip: float | None, dtype: torch.dtype) -> None:
    given = drawn(3, 130, dtype, False, clip, min(scale, 1e30))
    if scale == float("inf"):
        given = given._replace(sums=given.sums.sign() * scale)
    steps = twice(lambda: step(given))
    for got in steps[0]:
        assert got.isfinite().all()
    assert_close(steps)


@pytest.mark.parametrize("where", ["sums", "bias", "cell_in", "d_out", "d_cell"])
@pytest.mark.parametrize("payload", [0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], ids=hex)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_nan_stays_and_stays_alone(twice: Callable, where: str, payload: int, dtype: torch.dtype) -> None:
    """Whatever its bits: a NaN of float32 that is rounded like a number can become 0 or infinite."""
    batch, dim = 2, 33
    given = drawn(batch, dim, dtype, True, 3.0)
    damaged = getattr(given, where).clone()
    if damaged.dtype == torch.float32:
        damaged.view(torch.int32).flatten()[7] = payload - (payload >> 31 << 32)
    else:
        damaged.flatten()[7] = float("nan")
    got, expected = twice(lambda: step(given._replace(**{where: damaged})))
    assert any(part.isnan().any() for part in got)
    # torch stops a gradient at a cell state that is no number as at one that is clipped; ours lets it be seen
    gradients = [part.masked_fill(part_got.isnan(), 0) for part, part_got in zip(expected[3:], got[3:], strict=True)]
    assert_close(
        (got._replace(d_gates=got[3].nan_to_num(0), d_cell=got[4].nan_to_num(0)), Step(*expected[:3], *gradients))
    )
    assert all((part.isnan().reshape(-1, dim).sum(1) <= 1).all() for part in got)


@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.usefixtures("cell")
def test_equals_numpy(clip: float | None, dtype: torch.dtype) -> None:
    """The formulas in float64, and their slopes by central differences. In bfloat16 the activations that the backward
    pass reads are rounded to 8 bits: 1 % relative error in the root mean square is allowed, in float32 1e-5.
    """
    given = drawn(5, 64, dtype, True, clip)
    made = step(given)
    sums = (given.sums.double() + given.bias.double()).numpy()
    state, keep = given.cell_in.double().numpy(), np.linspace(0, 1, 6)[1:, None]
    d_out, d_cell = given.d_out.double().numpy(), given.d_cell.double().numpy()

    def forward(sums: Doubles, state: Doubles) -> tuple[Doubles, Doubles]:
        i, j, f, o = np.split(sums, 4, 1)
        c = state * keep / (1 + np.exp(-f)) + np.tanh(j) / (1 + np.exp(-i))
        c = c if clip is None else np.clip(c, -clip, clip)
        return c, np.tanh(c) / (1 + np.exp(-o))

    def slope(change: Callable[[float], tuple[Doubles, Doubles]], h: float = 1e-6) -> Doubles:
        totals = [(d_out * out + d_cell * c) for c, out in (change(h), change(-h))]
        return (totals[0] - totals[1]) / (2 * h)

    bound = 1e-5 if dtype == torch.float32 else 1e-2
    cells, outs = forward(sums, state)
    assert relative(made.cell, cells) <= 1e-6
    assert relative(made.out, outs) <= bound
    for k in range(4):
        one = np.repeat(np.arange(4) == k, 64)[None]
        expected = slope(lambda h, one=one: forward(sums + h * one, state))
        assert relative(made.d_gates[:, k * 64 : (k + 1) * 64], expected) <= bound
    assert relative(made.d_cell, slope(lambda h: forward(sums, state + h))) <= bound


def relative(got: Tensor, expected: Doubles) -> float:
    return float(np.linalg.norm(got.double().numpy() - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_compiled_cell_is_what_runs(
    monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL, dtype: torch.dtype
) -> None:
    called = []

    class Watched:
        def __getattr__(self, name: str) -> object:
            called.append(name)
            return getattr(compiled, name)

    monkeypatch.setattr(kernels, "load", Watched)
    step(drawn(2, 3, dtype))
    kind = str(dtype).removeprefix("torch.")
    assert called == [f"cell_forward_{kind}", f"cell_backward_{kind}"]


def test_the_order_of_the_gates_is_that_of_the_compiled_loops() -> None:
    """calls.h has the numbers, and tests/kernels/test_calls.py compares them with these. The parts are views."""
    values = torch.arange(GATES).repeat_interleave(3).repeat(2, 1)
    gates = Gates.of(values)
    for part, number in zip(gates, (GATE_I, GATE_J, GATE_F, GATE_O), strict=True):
        assert torch.equal(part, torch.full((2, 3), number))
    gates.output.add_(1)
    assert values[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 4, 4, 4]


def test_the_forget_bias_is_added_to_the_third_gate_of_a_file() -> None:
    """The order i, j, f, o of TensorFlow's LSTMCell, and its forget_bias of 1."""
    assert with_forget_bias(torch.zeros(2, 4), torch.float32).tolist() == [[0.0, 0.0, 1.0, 0.0]] * 2
