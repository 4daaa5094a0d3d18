"""One direction of an LSTM layer over a window of steps, in bfloat16 on the tiles of AMX.

The forward pass is one compiled call, and so is the backward pass. The layouts of the arrays, and their reasons, are
described in layouts.h of the kernels. Sums, cell states and gradients of weights are float32.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from .. import kernels
from ..kernels.calls import (
    AMX_SIZE_MULTIPLE,
    GATES,
    GRADIENT_GROUPS,
    INPUTS_ALIGNMENT,
    UNITS,
    AmxBackwardCall,
    AmxForwardCall,
    AmxGradientCall,
)
from .loops import address, bound, loops, optional_address
from .lstm_cell import Arrays, Clips, Tape, array

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


Gradients = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor]


def fits(x: Tensor, h0: Tensor, c0: Tensor, w_p: Tensor | None, matmul_dtype: torch.dtype) -> bool:
    """Return whether this machine has compiled calls for these sizes and types.

    x: *Shape:* (directions, steps, batch, input).
    h0, c0: *Shape:* (directions, batch, projection_dim) and (directions, batch, dim), the state to start from.
    w_p: weights of the projection; None: there is none, and then there is no compiled call.
    matmul_dtype: type of the matrix multiplications.
    """
    if matmul_dtype != LOW or w_p is None or any(size.shape[-1] % AMX_SIZE_MULTIPLE for size in (x, h0, c0)):
        return False
    if not all(tensor.dtype == REAL and tensor.device.type == "cpu" for tensor in (x, h0, c0)):
        return False
    return 0 not in x.shape and kernels.has_amx(loops(x))


def by_rows(cells: Tensor) -> Tensor:
    """Return a view of cell states, or of their gradients, with the rows in the usual order.

    cells: *Shape:* (n, rows, dim), in the layout of the compiled calls.

    Returns *Shape:* (n, rows, dim / 16, 16).
    """
    n, rows, dim = cells.shape
    return cells.view(n, dim // UNITS, rows, UNITS).transpose(1, 2)


class _Sizes(NamedTuple):
    """The sizes of one call. rows: of the batch, padded; width: projection_dim; both: width of the input + width."""

    steps: int
    rows: int
    dim: int
    both: int
    width: int

    @classmethod
    def of(cls, tape: Tape) -> _Sizes:
        """Return the sizes of a tape's arrays."""
        steps, rows, dim = tape.outs.shape
        return cls(steps, rows, dim, tape.inputs.shape[2], tape.hidden.shape[2])

    def address(self, tape: Tape, name: str) -> int:
        """Return the address of one of the tape's arrays. name: its field."""
        steps, rows, dim, both, width = self
        shapes = {
            "inputs": (steps, rows, both),
            "gates": (steps, rows, GATES * dim),
            "outs": (steps, rows, dim),
            "cells": (steps + 1, rows, dim),
            "hidden": (steps + 1, rows, width),
        }
        dtype, alignment = REAL if name == "cells" else LOW, INPUTS_ALIGNMENT if name == "gates" else 1
        return address(name, getattr(tape, name), dtype, shapes[name], alignment)


def forward(
    tape: Tape,
    weight: Tensor,
    bias: Tensor,
    w_p: Tensor,
    keep: Tensor | None,
    clips: Clips,
    batch: int,
    arrays: Arrays | None,
) -> None:
    """Run the forward pass, and fill the tape.

    tape: x in `inputs` and index 0 of `cells` and `hidden` are set already.
    weight: *Shape:* (input + projection_dim, 4 dim), bfloat16.
    bias: *Shape:* (4 dim,), float32, with 1 added for the forget gate.
    w_p: *Shape:* (dim, projection_dim), bfloat16.
    keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1; None: it is never forgotten.
    clips: bounds of the layer.
    batch: number of rows without padding.
    arrays: stored arrays, as in `tape.array`.
    """
    library, sizes = _library(weight), _Sizes.of(tape)
    steps, _, dim, both, width = sizes
    tape.inputs[:, batch:] = 0
    packed = _packed(sizes, arrays, weight)
    (of_weight, of_w_p), (of_packed, of_packed_w_p) = _addresses(sizes, weight, w_p), _addresses(sizes, *packed)
    library.amx_pack(both, GATES * dim, *Columns.of_gates(dim), of_weight, of_packed)
    library.amx_pack(dim, width, *IN_ORDER, of_w_p, of_packed_w_p)
    call = AmxForwardCall(
        steps=steps,
        batch=batch,
        dim=dim,
        n_in=both - width,
        width=width,
        inputs=sizes.address(tape, "inputs"),
        packed=of_packed,
        packed_w_p=of_packed_w_p,
        bias=address("bias", bias, REAL, (GATES * dim,)),
        keep=optional_address("keep", keep, REAL, (steps, batch, 1)),
        cells=sizes.address(tape, "cells"),
        hidden=sizes.address(tape, "hidden"),
        gates=sizes.address(tape, "gates"),
        outs=sizes.address(tape, "outs"),
        cell_bound=bound(clips.cell),
        proj_bound=bound(clips.proj),
    )
    library.amx_forward(ctypes.byref(call))


def backward(
    tape: Tape,
    weight: Tensor,
    w_p: Tensor,
    keep: Tensor | None,
    clips: Clips,
    d_hidden: Tensor | None,
    d_cells: Tensor | None,
    batch: int,
    arrays: Arrays | None,
) -> Gradients:
    """Run the backward pass, and return the gradients. The tape's gates are overwritten.

    d_hidden: *Shape:* (steps, batch, projection_dim), gradients of the outputs; None: 0.
    d_cells: *Shape:* (steps or 1, batch, dim), gradients of all cell states, or of the last one; None: 0.

    The other parameters are those of `forward`. Returns the gradients of x, weight, bias, w_p, h0 and c0.
    """
    library, sizes = _library(weight), _Sizes.of(tape)
    steps, rows, dim, both, width = sizes
    like, n_in = tape.cells, both - width
    packed = _packed(sizes, arrays, weight)
    (of_weight, of_w_p), (of_packed, of_packed_w_p) = _addresses(sizes, weight, w_p), _addresses(sizes, *packed)
    library.amx_pack_gates_transposed(dim, both, of_weight, of_packed)
    library.amx_pack_transposed(width, dim, of_w_p, of_packed_w_p)
    d_x, d_h = like.new_empty(steps, batch, n_in), like.new_zeros(batch, width)
    d_proj = array(arrays, "d_proj", like, weight.dtype, steps, rows, width)
    d_c = array(arrays, "d_c", like, like.dtype, 1, rows, dim).zero_()
    work = array(arrays, "work", like, like.dtype, rows, both + AMX_SIZE_MULTIPLE)
    if d_cells is not None and len(d_cells) == 1:
        by_rows(d_c)[0, :batch] = d_cells[0].unflatten(1, (-1, UNITS))
        d_cells = None
    above = [None if d is None else d.to(like.dtype).contiguous() for d in (d_hidden, d_cells)]
    call = AmxBackwardCall(
        steps=steps,
        batch=batch,
        dim=dim,
        n_in=n_in,
        width=width,
        packed=of_packed,
        packed_w_p=of_packed_w_p,
        keep=optional_address("keep", keep, REAL, (steps, batch, 1)),
        cells=sizes.address(tape, "cells"),
        hidden=sizes.address(tape, "hidden"),
        d_hidden=optional_address("d_hidden", above[0], REAL, (steps, batch, width)),
        d_cells=optional_address("d_cells", above[1], REAL, (steps, batch, dim)),
        gates=sizes.address(tape, "gates"),
        d_x=address("d_x", d_x, REAL, (steps, batch, n_in)),
        d_proj=address("d_proj", d_proj, LOW, (steps, rows, width)),
        d_h=address("d_h", d_h, REAL, (batch, width)),
        d_c=address("d_c", d_c, REAL, (1, rows, dim)),
        work=address("work", work, REAL, (rows, both + AMX_SIZE_MULTIPLE)),
        cell_bound=bound(clips.cell),
        proj_bound=bound(clips.proj),
    )
    library.amx_backward(ctypes.byref(call))
    d_weight, d_bias = weight_gradient(library, tape.inputs, tape.gates, Columns.of_gates(dim), arrays)
    d_w_p, _ = weight_gradient(library, d_proj, tape.outs, IN_ORDER, arrays)
    return d_x, d_weight, d_bias, d_w_p.t(), d_h, by_rows(d_c)[0, :batch].flatten(1)


def _packed(sizes: _Sizes, arrays: Arrays | None, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return arrays for the packed weight and the packed projection, whose values are not set."""
    packed = array(arrays, "packed", like, LOW, sizes.both, GATES * sizes.dim)
    return packed, array(arrays, "packed w_p", like, LOW, sizes.dim, sizes.width)


def _addresses(sizes: _Sizes, weight: Tensor, w_p: Tensor) -> tuple[int, int]:
    """Return the addresses of the weight and of the projection, packed or not."""
    of_weight = address("weight", weight, LOW, (sizes.both, GATES * sizes.dim))
    return of_weight, address("w_p", w_p, LOW, (sizes.dim, sizes.width))


def _library(weight: Tensor) -> ctypes.CDLL:
    library = loops(weight)
    assert library is not None  # otherwise `fits` returns False
    return library
