"""A layer's scan by autograd over the plain cell in torch, and what the scans of the package are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spacy_elmo.modules.lstm_cell import Clips, LayerWeights, LstmState

STEPS, BATCH, INPUT, DIM, WIDTH = 5, 9, 64, 128, 64  # sizes that the loops on AMX accept
LOW = torch.bfloat16
# both bind, and bfloat16 has both numbers
CLIPS = [Clips(None, None), Clips(0.75, None), Clips(None, 0.5), Clips(0.75, 0.5)]
# of the relative error in the root mean square. The reference is float64, and rounds as bfloat16 does if the scan does.
BOUNDS = {torch.float64: 1e-12, torch.float32: 5e-6, LOW: 0.016}


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


def parts_of(inputs: list[Tensor]) -> tuple[Tensor, LayerWeights, LstmState]:
    """The inputs of `drawn` as a scan takes them."""
    x, w_x, w_h, bias, h0, c0, *w_p = inputs
    return x, LayerWeights(w_x, w_h, bias, w_p[0] if w_p else None), LstmState(h0, c0)


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


def forgetting(steps: int = STEPS, batch: int = BATCH) -> Tensor:
    return ((torch.arange(steps)[:, None] + torch.arange(batch)) % 4 > 0).double()[..., None]


def relative(got: Tensor, expected: Tensor) -> float:
    return float((got.double() - expected).norm() / expected.norm())


def assert_computes_the_layer(
    scan: Callable[..., tuple[Tensor, Tensor]],
    given: Given,
    keep: Tensor | None,
    clips: Clips,
    precision: torch.dtype,
    *,
    device: str = "cpu",
    low_sums: bool = False,
) -> None:
    """Check values and gradients of a scan, which returns c after each step or after the last one alone.

    scan: called with x, weights, state and clips. precision: of its matrix multiplications. low_sums: as in `plain`.
    """
    exact = [tensor.clone().requires_grad_() for tensor in given.inputs]
    low, dtype = precision == LOW, torch.float32 if precision == LOW else precision
    expected = plain(exact, keep, clips, low, low_sums)
    ours = [tensor.to(device, dtype, copy=True).requires_grad_() for tensor in given.inputs]
    got = scan(*parts_of(ours), clips)
    last = slice(-got[1].shape[1], None)
    d_hidden, d_cells = given.d_hidden, given.d_cells[:, last]
    values = expected[0], expected[1][:, last]
    for made, wanted in zip(got, values, strict=True):
        assert made.dtype == dtype
        assert relative(made.detach().cpu(), wanted.detach()) <= BOUNDS[precision]
    if low:
        unrounded = plain(given.inputs, keep, clips, False, False)
        for made, wanted in zip(got, (unrounded[0], unrounded[1][:, last]), strict=True):
            assert relative(made.detach().cpu(), wanted) > 1e-4
    if clips.cell is not None:
        assert (expected[1].abs() == clips.cell).double().mean() > 0.1
    if clips.proj is not None and len(ours) == 7:
        assert (expected[0].abs() == clips.proj).double().mean() > 0.1
    # a rounded output may be clipped here and not there, and then its gradient stops here and not there
    bound = BOUNDS[precision] * (2 if low and clips.proj is not None else 1)
    ((got[0] * d_hidden.to(device, dtype)).sum() + (got[1] * d_cells.to(device, dtype)).sum()).backward()
    ((values[0] * d_hidden).sum() + (values[1] * d_cells).sum()).backward()
    for ours_, exact_ in zip(ours, exact, strict=True):
        assert ours_.grad is not None
        assert exact_.grad is not None
        assert ours_.grad.dtype == dtype
        assert relative(ours_.grad.cpu(), exact_.grad) <= bound
