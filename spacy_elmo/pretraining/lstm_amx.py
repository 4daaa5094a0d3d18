"""One direction of an LSTM layer over a window of steps, in bfloat16 on the tiles of AMX.

Each pass is one compiled call. In these the rows of a `Scan` are padded, and gates, outs and cells have the layouts
that calls.h of the kernels describes, with their reasons.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from .. import kernels
from ..kernels import address, bound
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
from ..modules.loops import loops, optional_address
from ..modules.lstm_cell import Clips, Scan
from .workspace import Workspace

LOW, REAL = torch.bfloat16, torch.float32  # of what is multiplied; of sums, cell states and gradients of weights


# Which columns of a matrix are packed together: four tiles of 16 columns are a group. The numbers of columns from one
# tile to the next in a group, and from one group to the next. A group of gates has the four gates of 16 units.
IN_ORDER = UNITS, AMX_SIZE_MULTIPLE


def fits(x: Tensor, h0: Tensor, c0: Tensor, w_p: Tensor | None, matmul_dtype: torch.dtype) -> bool:
    """Return whether this machine has compiled calls for these sizes and types. There must be a projection, w_p."""
    if matmul_dtype != LOW or w_p is None or any(size.shape[-1] % AMX_SIZE_MULTIPLE for size in (x, h0, c0)):
        return False
    if not all(tensor.dtype == REAL and tensor.device.type == "cpu" for tensor in (x, h0, c0)):
        return False
    return 0 not in x.shape and kernels.has("amx", loops(x))


def by_rows(cells: Tensor) -> Tensor:
    """Return a view of cell states, or of their gradients, in the usual order, *Shape:* (..., rows, dim / 16, 16)."""
    *others, rows, dim = cells.shape
    return cells.view(*others, dim // UNITS, rows, UNITS).transpose(-3, -2)


def forward(scan: Scan, clips: Clips, batch: int, workspace: Workspace) -> None:
    """Run the forward pass of one direction, and fill the tape.

    scan: x in `inputs` and index 0 of `cells` and `hidden` are set already.
    batch: number of rows without padding.
    """
    (steps, _, dim), both, width = scan.outs.shape, scan.inputs.shape[2], scan.hidden.shape[2]
    scan.inputs[:, batch:] = 0
    library, _packed, (of_weight, of_w_p, of_packed, of_packed_w_p) = _matrices(scan, workspace)
    library.amx_pack(both, GATES * dim, dim, UNITS, of_weight, of_packed)
    library.amx_pack(dim, width, *IN_ORDER, of_w_p, of_packed_w_p)
    call = AmxForwardCall(
        steps=steps,
        batch=batch,
        dim=dim,
        n_in=both - width,
        width=width,
        packed=of_packed,
        packed_w_p=of_packed_w_p,
        bias=address("bias", scan.bias, REAL, (GATES * dim,)),
        keep=optional_address("keep", scan.keep, REAL, (steps, batch, 1)),
        cell_bound=bound(clips.cell),
        proj_bound=bound(clips.proj),
        **_places(scan),
    )
    library.amx_forward(ctypes.byref(call))


def backward(
    scan: Scan, clips: Clips, d_hidden: Tensor | None, d_cells: Tensor | None, batch: int, workspace: Workspace
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor]:
    """Return the gradients of x, weight, bias, w_p, h0 and c0, as `backward_steps` of modules does."""
    (steps, rows, dim), both, width = scan.outs.shape, scan.inputs.shape[2], scan.hidden.shape[2]
    like, n_in, places = scan.cells, both - width, _places(scan)
    library, _packed, (of_weight, of_w_p, of_packed, of_packed_w_p) = _matrices(scan, workspace)
    library.amx_pack_gates_transposed(dim, both, of_weight, of_packed)
    library.amx_pack_transposed(width, dim, of_w_p, of_packed_w_p)
    d_x, d_h = like.new_empty(steps, batch, n_in), like.new_zeros(batch, width)
    d_proj = workspace.array("d_proj", like, LOW, steps, rows, width)
    d_c = workspace.array("d_c", like, REAL, 1, rows, dim).zero_()
    work = workspace.array("work", like, REAL, rows, both + AMX_SIZE_MULTIPLE)
    if d_cells is not None and len(d_cells) == 1:
        by_rows(d_c)[0, :batch] = d_cells[0].unflatten(1, (-1, UNITS))
        d_cells = None
    above = [None if d is None else d.to(REAL).contiguous() for d in (d_hidden, d_cells)]
    call = AmxBackwardCall(
        steps=steps,
        batch=batch,
        dim=dim,
        n_in=n_in,
        width=width,
        packed=of_packed,
        packed_w_p=of_packed_w_p,
        keep=optional_address("keep", scan.keep, REAL, (steps, batch, 1)),
        cells=places["cells"],
        hidden=places["hidden"],
        gates=places["gates"],
        d_hidden=optional_address("d_hidden", above[0], REAL, (steps, batch, width)),
        d_cells=optional_address("d_cells", above[1], REAL, (steps, batch, dim)),
        d_x=address("d_x", d_x, REAL, (steps, batch, n_in)),
        d_proj=address("d_proj", d_proj, LOW, (steps, rows, width)),
        d_h=address("d_h", d_h, REAL, (batch, width)),
        d_c=address("d_c", d_c, REAL, (1, rows, dim)),
        work=address("work", work, REAL, (rows, both + AMX_SIZE_MULTIPLE)),
        cell_bound=bound(clips.cell),
        proj_bound=bound(clips.proj),
    )
    library.amx_backward(ctypes.byref(call))
    d_weight, d_bias = weight_gradient(library, scan.inputs, scan.gates, (dim, UNITS), workspace)
    d_w_p, _ = weight_gradient(library, d_proj, scan.outs, IN_ORDER, workspace)
    return d_x, d_weight, d_bias, d_w_p.t(), d_h, by_rows(d_c)[0, :batch].flatten(1)


def weight_gradient(
    library: ctypes.CDLL, left: Tensor, right: Tensor, columns: tuple[int, int], workspace: Workspace
) -> tuple[Tensor, Tensor]:
    """Return left^T right, summed over all steps, and the sum of right's rows: gradients of a weight and its bias.

    left: *Shape:* (steps, rows, m), bfloat16.
    right: *Shape:* (steps, rows, n), bfloat16; each step is blocked or in the layout of gates.
    columns: those of the result that belong to the tiles of right: IN_ORDER, or (dim, UNITS) for the gates.

    Returns *Shape:* (m, n) and (n,), float32.
    """
    (steps, rows, m), n = left.shape, right.shape[2]
    tiles = workspace.array(f"left {m}", left, LOW, *left.shape)
    gradient, totals = (left.new_empty(*shape, dtype=REAL) for shape in ((m, n), (n,)))
    work = workspace.array(f"work {m}", left, REAL, GRADIENT_GROUPS * AMX_SIZE_MULTIPLE, m)
    of_tiles = address("tiles", tiles, LOW, (steps, rows, m))
    library.amx_pack_left(steps * rows, m, address("left", left, LOW, (steps, rows, m)), of_tiles)
    call = AmxGradientCall(
        steps=steps,
        rows=rows,
        m=m,
        n=n,
        tile_stride=columns[0],
        group_stride=columns[1],
        left=of_tiles,
        right=address("right", right, LOW, (steps, rows, n)),
        gradient=address("gradient", gradient, REAL, (m, n)),
        totals=address("totals", totals, REAL, (n,)),
        work=address("work", work, REAL, (GRADIENT_GROUPS * AMX_SIZE_MULTIPLE, m)),
    )
    library.amx_weight_gradient(ctypes.byref(call))
    return gradient, totals


def _places(scan: Scan) -> dict[str, int]:
    """Return the addresses of the tape's arrays by their names."""
    (steps, rows, dim), both, width = scan.outs.shape, scan.inputs.shape[2], scan.hidden.shape[2]
    return {
        "inputs": address("inputs", scan.inputs, LOW, (steps, rows, both)),
        "gates": address("gates", scan.gates, LOW, (steps, rows, GATES * dim), INPUTS_ALIGNMENT),
        "outs": address("outs", scan.outs, LOW, (steps, rows, dim)),
        "cells": address("cells", scan.cells, REAL, (steps + 1, rows, dim)),
        "hidden": address("hidden", scan.hidden, LOW, (steps + 1, rows, width)),
    }


def _matrices(scan: Scan, workspace: Workspace) -> tuple[ctypes.CDLL, list[Tensor], list[int]]:
    """Return the loops, arrays for the packed weight and projection, and addresses: of both, and of these arrays."""
    library, w_p = loops(scan.weight), scan.w_p
    assert library is not None  # otherwise `fits` returns False
    assert w_p is not None
    dim, width = scan.outs.shape[2], scan.hidden.shape[2]
    shapes = {"weight": (scan.inputs.shape[2], GATES * dim), "w_p": (dim, width)}
    packed = [workspace.array(f"packed {name}", scan.weight, LOW, *shape) for name, shape in shapes.items()]
    both = zip([*shapes.items()] * 2, (scan.weight, w_p, *packed))
    return library, packed, [address(name, matrix, LOW, shape) for (name, shape), matrix in both]
