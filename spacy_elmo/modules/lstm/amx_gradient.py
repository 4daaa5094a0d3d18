"""The gradient of a weight over all steps of a window, in bfloat16 on the tiles of AMX."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from ...kernels.calls import AmxGradientCall
from ...kernels.constants import AMX_SIZE_MULTIPLE, GRADIENT_GROUPS, UNITS
from ..loops import address
from .tape import Arrays, array

LOW, REAL = torch.bfloat16, torch.float32


class Columns(NamedTuple):
    """Which columns of a matrix are packed together: four tiles of 16 columns are a group.

    tile_stride: number of columns from one tile to the next in a group.
    group_stride: number of columns from one group to the next.
    """

    tile_stride: int
    group_stride: int

    @classmethod
    def of_gates(cls, dim: int) -> Columns:
        """Return the columns of a matrix of shape (any, 4 dim): a group has the four gates of 16 units."""
        return cls(dim, UNITS)


IN_ORDER = Columns(UNITS, AMX_SIZE_MULTIPLE)  # the columns stay in their order


def weight_gradient(
    library: ctypes.CDLL, left: Tensor, right: Tensor, columns: Columns, arrays: Arrays | None
) -> tuple[Tensor, Tensor]:
    """Return left^T right, summed over all steps, and the sum of right's rows: gradients of a weight and its bias.

    left: *Shape:* (steps, rows, m), bfloat16.
    right: *Shape:* (steps, rows, n), bfloat16; each step is blocked or in the layout of gates.
    columns: the columns of the result that belong to the tiles of right.
    arrays: stored arrays, as in `tape.array`.

    Returns *Shape:* (m, n) and (n,), float32.
    """
    (steps, rows, m), n = left.shape, right.shape[2]
    tiles = array(arrays, f"left {m}", left, left.dtype, *left.shape)
    gradient, totals = (left.new_empty(*shape, dtype=REAL) for shape in ((m, n), (n,)))
    work = array(arrays, f"work {m}", left, REAL, GRADIENT_GROUPS * AMX_SIZE_MULTIPLE, m)
    of_tiles = address("tiles", tiles, LOW, (steps, rows, m))
    library.amx_pack_left(steps * rows, m, address("left", left, LOW, (steps, rows, m)), of_tiles)
    call = AmxGradientCall(
        steps=steps,
        rows=rows,
        m=m,
        n=n,
        tile_stride=columns.tile_stride,
        group_stride=columns.group_stride,
        left=of_tiles,
        right=address("right", right, LOW, (steps, rows, n)),
        gradient=address("gradient", gradient, REAL, (m, n)),
        totals=address("totals", totals, REAL, (n,)),
        work=address("work", work, REAL, (GRADIENT_GROUPS * AMX_SIZE_MULTIPLE, m)),
    )
    library.amx_weight_gradient(ctypes.byref(call))
    return gradient, totals
