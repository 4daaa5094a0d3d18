"""Updates of the scored words' rows: a step touches a tenth of the softmax, or less.

Adam's averages of a row stand still while the row is not touched, as in torch.optim.SparseAdam, which does the same
several times more slowly (measured: 14 against 0.9 ms for 10,000 of 50,000 rows).
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ...modules.loops import address, loops


class AdamRows:
    """Adam (Kingma and Ba 2015) on some rows of a float32 table, *Shape:* (all rows, width)."""

    def __init__(self, table: Tensor, beta1: float, beta2: float, epsilon: float = 1e-8) -> None:
        self.table, self.beta1, self.beta2, self.epsilon = table, beta1, beta2, epsilon
        self.first, self.second = torch.zeros_like(table), torch.zeros_like(table)

    def state(self) -> dict[str, Tensor]:
        """The averages, shared with this object."""
        return {"first": self.first, "second": self.second}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go to where state() was copied."""
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])

    @torch.no_grad()
    def update(self, rows: Tensor, d_rows: Tensor, rate: float, step: int) -> None:
        """rows: *Shape:* (n,), distinct; d_rows: (n, width); step: from 1."""
        size, correction = rate / (1 - self.beta1**step), math.sqrt(1 - self.beta2**step)
        library = loops(self.table)
        if library is not None:
            rows, d_rows = rows.contiguous(), d_rows.contiguous()
            library.adam_rows(
                *_sizes(self.table, rows),
                *_addresses(rows, d_rows, self.table, self.first, self.second),
                size,
                correction,
                self.beta1,
                self.beta2,
                self.epsilon,
            )
            return
        first = self.first[rows].lerp_(d_rows, 1 - self.beta1)
        second = self.second[rows].mul_(self.beta2).addcmul_(d_rows, d_rows, value=1 - self.beta2)
        self.first[rows], self.second[rows] = first, second
        self.table[rows] -= size * first / (second.sqrt() / correction + self.epsilon)


class AdagradRows:
    """Adagrad (Duchi et al. 2011) on some rows of a float32 table; bilm-tf's accumulator starts at 1."""

    def __init__(self, table: Tensor, initial_accumulator: float, epsilon: float = 1e-10) -> None:
        self.table, self.epsilon = table, epsilon
        self.squares = torch.full_like(table, initial_accumulator)

    def state(self) -> dict[str, Tensor]:
        """The accumulator, shared with this object."""
        return {"squares": self.squares}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go to where state() was copied."""
        self.squares.copy_(state["squares"])

    @torch.no_grad()
    def update(self, rows: Tensor, d_rows: Tensor, rate: float, step: int) -> None:
        """rows: *Shape:* (n,), distinct; d_rows: (n, width)."""
        library = loops(self.table)
        if library is not None:
            rows, d_rows = rows.contiguous(), d_rows.contiguous()
            library.adagrad_rows(
                *_sizes(self.table, rows),
                *_addresses(rows, d_rows, self.table, self.squares),
                rate,
                self.epsilon,
            )
            return
        squares = self.squares[rows].addcmul_(d_rows, d_rows)
        self.squares[rows] = squares
        self.table[rows] -= rate * d_rows / (squares.sqrt() + self.epsilon)


def _sizes(table: Tensor, rows: Tensor) -> tuple[int, int]:
    return len(rows), table.shape[1]


def _addresses(rows: Tensor, d_rows: Tensor, table: Tensor, *state: Tensor) -> list[int]:
    """state: of the table's shape."""
    real, shape = torch.float32, tuple(table.shape)
    return [
        address("rows", rows, torch.int64, (len(rows),)),
        address("d_rows", d_rows, real, (len(rows), shape[1])),
        *(address("table or state", array, real, shape) for array in (table, *state)),
    ]
