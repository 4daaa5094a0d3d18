"""One step of the LSTM cell and its gradient, in place on the tape's rows: in torch, or compiled where it was built.

Gates stand in the files' order i, j, f, o. Rows are contiguous. The cell state is float32 (float64 where all is);
what the matrix products take and give may be bfloat16: then sums and activations are taken in float32.
"""

import ctypes

import torch
from torch import Tensor

from ... import kernels

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def cell_forward(
    sums: Tensor,
    gates: Tensor,
    bias: Tensor,
    cell_in: Tensor,
    keep: Tensor | None,
    cell_out: Tensor,
    out: Tensor,
    clip: float | None,
) -> None:
    """c' = clip(sigmoid(f) keep c + sigmoid(i) tanh(j)); out = sigmoid(o) tanh(c').

    sums: *Shape:* (batch, 4 dim), of the gates, without bias; gates: the same shape, their activations, out; bias:
    (4 dim,), the forget bias included; cell_in, cell_out, out: (batch, dim); keep: (batch, 1).
    """
    library = loops(gates)
    batch, dim = out.shape
    if library is not None:
        getattr(library, f"cell_forward_{NAMES[gates.dtype]}")(
            batch,
            dim,
            sums.data_ptr(),
            gates.data_ptr(),
            bias.data_ptr(),
            cell_in.data_ptr(),
            None if keep is None else keep.data_ptr(),
            cell_out.data_ptr(),
            out.data_ptr(),
            -1.0 if clip is None else clip,
        )
        return
    active = sums + bias
    active[:, :dim].sigmoid_()
    active[:, dim : 2 * dim].tanh_()
    active[:, 2 * dim :].sigmoid_()
    gates.copy_(active)
    i, j, f, o = active.split(dim, 1)
    torch.mul(cell_in if keep is None else cell_in * keep, f, out=cell_out).addcmul_(i, j)
    if clip is not None:
        cell_out.clamp_(-clip, clip)
    out.copy_(torch.tanh(cell_out).mul_(o))


def cell_backward(
    gates: Tensor,
    cell_in: Tensor,
    keep: Tensor | None,
    cell_out: Tensor,
    d_out: Tensor,
    d_cell: Tensor,
    clip: float | None,
) -> Tensor:
    """The gradient of cell_in from those of cell_out, d_cell (overwritten), and of out.

    gates: *Shape:* (batch, 4 dim), activations in, the gradient of the sums out; the others as in cell_forward.
    """
    library = loops(gates)
    batch, dim = d_out.shape
    if library is not None:
        getattr(library, f"cell_backward_{NAMES[gates.dtype]}")(
            batch,
            dim,
            gates.data_ptr(),
            cell_in.data_ptr(),
            None if keep is None else keep.data_ptr(),
            cell_out.data_ptr(),
            d_out.data_ptr(),
            d_cell.data_ptr(),
            -1.0 if clip is None else clip,
        )
        return d_cell
    sigmoid_backward, tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
    i, j, f, o = gates.to(cell_out.dtype, copy=True).split(dim, 1)
    d_i, d_j, d_f, d_o = gates.split(dim, 1)
    d_out, tanh_c = d_out.to(cell_out.dtype), torch.tanh(cell_out)
    d_o.copy_(sigmoid_backward(d_out * tanh_c, o))
    d_cell = d_cell + tanh_backward(d_out * o, tanh_c)
    if clip is not None:
        d_cell = torch.ops.aten.hardtanh_backward(d_cell, cell_out, -clip, clip)
    d_i.copy_(sigmoid_backward(d_cell * j, i))
    d_j.copy_(tanh_backward(d_cell * i, j))
    d_f.copy_(sigmoid_backward(d_cell * (cell_in if keep is None else cell_in * keep), f))
    d_cell = d_cell * f
    return d_cell if keep is None else d_cell * keep


def loops(tensor: Tensor) -> ctypes.CDLL | None:
    """The compiled loops, where they take such a tensor."""
    return kernels.load() if tensor.dtype in NAMES and tensor.device.type == "cpu" else None
