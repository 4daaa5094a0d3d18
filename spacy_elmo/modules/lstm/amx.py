"""One direction of an LSTM layer over a window of steps, in bfloat16 on the tiles of AMX: one compiled call each way.

The arrays' layouts, and why, are described in kernels/amx.h. Sums, cells and gradients of weights are float32.
"""

import ctypes

import torch
from torch import Tensor

from ... import kernels
from .cell import loops
from .tape import Arrays, Tape, array

GROUP = 64  # columns that four tiles of a right operand hold: sizes are multiples of it
UNITS = 16  # that a tile of sums holds
PADDING = 32  # rows that a tile of gradients' products holds
WORK = 8 * 64  # WIDE groups of columns in amx_gradients.c

Gradients = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor]


def fits(x: Tensor, h0: Tensor, c0: Tensor, w_p: Tensor | None, products: torch.dtype) -> bool:
    """Whether the compiled calls take such sizes and types here."""
    if products != torch.bfloat16 or w_p is None or any(size.shape[-1] % GROUP for size in (x, h0, c0)):
        return False
    if not all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in (x, h0, c0)):
        return False
    return 0 not in x.shape and kernels.has_amx(loops(x))


def padded(batch: int) -> int:
    """Rows of the arrays."""
    return -(-batch // PADDING) * PADDING


def by_rows(cells: Tensor) -> Tensor:
    """A tape's cells, or their gradients, row by row.

    cells: *Shape:* (n, rows, dim), in the layout of the calls; returns a view, (n, rows, dim / 16, 16).
    """
    n, rows, dim = cells.shape
    return cells.view(n, dim // UNITS, rows, UNITS).transpose(1, 2)


def forward(
    tape: Tape,
    weight: Tensor,
    bias: Tensor,
    w_p: Tensor,
    keep: Tensor | None,
    clips: tuple[float | None, float | None],
    batch: int,
    arrays: Arrays | None,
) -> None:
    """Fill the tape, whose x and first states are there. bias: the forget bias included; clips: cell and proj."""
    library = _library(weight)
    steps, _, dim = tape.outs.shape
    both, width = tape.inputs.shape[2], tape.hidden.shape[2]
    tape.inputs[:, batch:] = 0
    packed, packed_w_p = _packed(arrays, weight, w_p)
    library.amx_pack(both, 4 * dim, dim, UNITS, weight.data_ptr(), packed.data_ptr())
    library.amx_pack(dim, width, UNITS, GROUP, w_p.data_ptr(), packed_w_p.data_ptr())
    library.lstm_forward_amx(
        *(steps, batch, dim, both - width, width),
        *(tape.inputs.data_ptr(), packed.data_ptr(), packed_w_p.data_ptr(), bias.data_ptr(), _address(keep)),
        *(tape.cells.data_ptr(), tape.hidden.data_ptr(), tape.gates.data_ptr(), tape.outs.data_ptr()),
        *_bounds(clips),
    )


def backward(
    tape: Tape,
    weight: Tensor,
    w_p: Tensor,
    keep: Tensor | None,
    clips: tuple[float | None, float | None],
    d_hidden: Tensor | None,
    d_cells: Tensor | None,
    batch: int,
    arrays: Arrays | None,
) -> Gradients:
    """Overwrite the tape's gates: d_x, d_weight, d_bias, d_w_p, d_h0, d_c0.

    d_hidden: *Shape:* (steps, batch, projection_dim); d_cells: (steps or 1, batch, dim), of the last steps.
    """
    library = _library(weight)
    steps, rows, dim = tape.outs.shape
    both, width = tape.inputs.shape[2], tape.hidden.shape[2]
    like = tape.cells
    packed, packed_w_p = _packed(arrays, weight, w_p)
    library.amx_pack_gates_transposed(dim, both, weight.data_ptr(), packed.data_ptr())
    library.amx_pack_transposed(width, dim, w_p.data_ptr(), packed_w_p.data_ptr())
    d_x, d_h = like.new_empty(steps, batch, both - width), like.new_zeros(batch, width)
    d_proj = array(arrays, "d_proj", like, weight.dtype, steps, rows, width)
    d_c = array(arrays, "d_c", like, like.dtype, 1, rows, dim).zero_()
    work = array(arrays, "work", like, like.dtype, rows, both + GROUP)
    if d_cells is not None and len(d_cells) == 1:
        by_rows(d_c)[0, :batch] = d_cells[0].unflatten(1, (-1, UNITS))
        d_cells = None
    above = [None if given is None else given.to(like.dtype).contiguous() for given in (d_hidden, d_cells)]
    library.lstm_backward_amx(
        *(steps, batch, dim, both - width, width, packed.data_ptr(), packed_w_p.data_ptr(), _address(keep)),
        *(tape.cells.data_ptr(), tape.hidden.data_ptr(), _address(above[0]), _address(above[1])),
        *(tape.gates.data_ptr(), d_x.data_ptr(), d_proj.data_ptr(), d_h.data_ptr(), d_c.data_ptr()),
        *(work.data_ptr(), *_bounds(clips)),
    )
    d_weight, d_bias = _products(library, tape.inputs, tape.gates, arrays, dim, UNITS)
    d_w_p, _ = _products(library, d_proj, tape.outs, arrays, UNITS, GROUP)
    return d_x, d_weight, d_bias, d_w_p.t(), d_h, by_rows(d_c)[0, :batch].flatten(1)


def _products(
    library: ctypes.CDLL, left: Tensor, right: Tensor, arrays: Arrays | None, between: int, apart: int
) -> tuple[Tensor, Tensor]:
    """left^T right over all steps, and the sum of right's rows; right: gates' (4 dim) or outs' layout."""
    steps, rows, m = left.shape
    n = right.shape[2]
    tiles = array(arrays, f"left {m}", left, left.dtype, *left.shape)
    library.amx_pack_left(steps * rows, m, left.data_ptr(), tiles.data_ptr())
    product, totals = (left.new_empty(*shape, dtype=torch.float32) for shape in ((m, n), (n,)))
    work = array(arrays, f"work {m}", left, torch.float32, WORK, m)
    library.amx_transposed_product(
        *(steps, rows, m, n, between, apart, tiles.data_ptr(), right.data_ptr()),
        *(product.data_ptr(), totals.data_ptr(), work.data_ptr()),
    )
    return product, totals


def _packed(arrays: Arrays | None, weight: Tensor, w_p: Tensor) -> tuple[Tensor, Tensor]:
    packed = array(arrays, "packed", weight, weight.dtype, *weight.shape)
    return packed, array(arrays, "packed w_p", w_p, w_p.dtype, *w_p.shape)


def _library(weight: Tensor) -> ctypes.CDLL:
    library = loops(weight)
    assert library is not None
    return library


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _bounds(clips: tuple[float | None, float | None]) -> tuple[float, ...]:
    return tuple(-1.0 if clip is None else clip for clip in clips)
