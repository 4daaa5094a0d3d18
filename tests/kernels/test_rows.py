"""Row updates, compiled and in torch, against torch's optimisers and against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from spacy_elmo.pretraining.optimizers import AdagradRows, AdamRows

ROWS, STEPS, RATE = 23, 7, 0.05
WIDTHS = [1, 5, 33, 64, 130]
EPSILON = 1e-12  # next to nothing: SparseAdam does not divide it by the square root of 1 - beta2^t, Adam and ours do


def table(width: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(width).normal(size=(ROWS, width)).astype(np.float32))


def steps(width: int, everything: bool = False) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Number, rows and their gradients; each step has other rows, in no order, and one touches none."""
    rng = np.random.default_rng(0)
    for number in range(1, STEPS + 1):
        n = ROWS if everything else (0 if number == 4 else int(rng.integers(1, ROWS)))
        rows = torch.from_numpy(rng.permutation(ROWS)[:n])
        yield number, rows, torch.from_numpy(rng.normal(size=(n, width)).astype(np.float32))


def updated(kind: str, width: int) -> list[Tensor]:
    """The table and the moments after all steps."""
    weight = table(width)
    updates = AdamRows(weight, 0.9, 0.99, EPSILON) if kind == "adam" else AdagradRows(weight, 1.0)
    for number, rows, d_rows in steps(width):
        updates.update(rows, d_rows, RATE, number)
    return [weight, *updates.state().values()]


def updated_by_torch(kind: str, width: int) -> list[Tensor]:
    weight = table(width).requires_grad_()
    optimizer: torch.optim.Optimizer
    if kind == "adam":
        optimizer = torch.optim.SparseAdam([weight], lr=RATE, betas=(0.9, 0.99), eps=EPSILON)
    else:
        optimizer = torch.optim.Adagrad([weight], lr=RATE, initial_accumulator_value=1.0)
    with torch.sparse.check_sparse_tensor_invariants(True):  # torch warns unless it is told
        for _, rows, d_rows in steps(width):
            weight.grad = torch.sparse_coo_tensor(rows[None], d_rows, weight.shape)
            optimizer.step()
    names = ("exp_avg", "exp_avg_sq") if kind == "adam" else ("sum",)
    return [weight.detach(), *(optimizer.state[weight][name] for name in names)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["adam", "adagrad"])
def test_updates_are_torchs(twice: Callable, kind: str, width: int) -> None:
    compiled, plain = twice(lambda: updated(kind, width))
    for got, other, expected in zip(compiled, plain, updated_by_torch(kind, width), strict=True):
        torch.testing.assert_close(got, other, rtol=2e-6, atol=1e-6)
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("cell")
def test_adam_on_all_rows_is_adam() -> None:
    """With an epsilon that counts, as there SparseAdam differs from Adam (Kingma and Ba's algorithm 1)."""
    weight, same = table(5), table(5).requires_grad_()
    updates = AdamRows(weight, 0.9, 0.99, epsilon=0.1)
    optimizer = torch.optim.Adam([same], lr=RATE, betas=(0.9, 0.99), eps=0.1)
    for number, rows, d_rows in steps(5, everything=True):
        updates.update(rows, d_rows, RATE, number)
        same.grad = torch.zeros_like(same).index_copy_(0, rows, d_rows)
        optimizer.step()
    torch.testing.assert_close(weight, same.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("cell")
def test_nan_spoils_its_row_alone() -> None:
    weight = table(33)
    gradient = torch.zeros(2, 33)
    gradient[1, 4] = float("nan")
    AdamRows(weight, 0.9, 0.99).update(torch.tensor([5, 8]), gradient, RATE, 1)
    assert weight.isnan().nonzero().tolist() == [[8, 4]]
