"""One step of the LSTM cell and its gradient, in place on the tape's rows: in torch, or compiled where it was built.

Gates stand in the files' order i, j, f, o. Rows are contiguous.
"""

import torch
from torch import Tensor

from .. import kernels


def cell_forward(
    gates: Tensor, cell_in: Tensor, keep: Tensor | None, cell_out: Tensor, out: Tensor, clip: float | None
) -> None:
    """c' = clip(sigmoid(f) keep c + sigmoid(i) tanh(j)); out = sigmoid(o) tanh(c').

    gates: *Shape:* (batch, 4 dim), sums in, activations out; cell_in, cell_out, out: (batch, dim); keep: (batch, 1).
    """
    kernel = _kernel(gates)
    batch, dim = out.shape
    if kernel is not None:
        kernel.forward(
            batch,
            dim,
            gates.data_ptr(),
            cell_in.data_ptr(),
            _address(keep),
            cell_out.data_ptr(),
            out.data_ptr(),
            -1.0 if clip is None else clip,
        )
        return
    gates[:, :dim].sigmoid_()
    gates[:, dim : 2 * dim].tanh_()
    gates[:, 2 * dim :].sigmoid_()
    i, j, f, o = gates.split(dim, 1)
    torch.mul(cell_in if keep is None else cell_in * keep, f, out=cell_out).addcmul_(i, j)
    if clip is not None:
        cell_out.clamp_(-clip, clip)
    torch.mul(torch.tanh(cell_out), o, out=out)


def cell_backward(
    gates: Tensor,
    cell_in: Tensor,
    keep: Tensor | None,
    cell_out: Tensor,
    d_out: Tensor,
    d_cell: Tensor,
    d_gates: Tensor,
    clip: float | None,
) -> Tensor:
    """The gradient of cell_in from those of cell_out, d_cell (overwritten), and of out; fills d_gates."""
    kernel = _kernel(gates)
    batch, dim = d_out.shape
    if kernel is not None:
        kernel.backward(
            batch,
            dim,
            gates.data_ptr(),
            cell_in.data_ptr(),
            _address(keep),
            cell_out.data_ptr(),
            d_out.data_ptr(),
            d_cell.data_ptr(),
            d_gates.data_ptr(),
            -1.0 if clip is None else clip,
        )
        return d_cell
    sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
    i, j, f, o = gates.split(dim, 1)
    d_i, d_j, d_f, d_o = d_gates.split(dim, 1)
    tanh_c = torch.tanh(cell_out)
    sigmoid_backward(d_out * tanh_c, o, grad_input=d_o)
    d_cell = d_cell + torch.ops.aten.tanh_backward(d_out * o, tanh_c)
    if clip is not None:
        d_cell = torch.ops.aten.hardtanh_backward(d_cell, cell_out, -clip, clip)
    sigmoid_backward(d_cell * j, i, grad_input=d_i)
    torch.ops.aten.tanh_backward.grad_input(d_cell * i, j, grad_input=d_j)
    sigmoid_backward(d_cell * (cell_in if keep is None else cell_in * keep), f, grad_input=d_f)
    d_cell = d_cell * f
    return d_cell if keep is None else d_cell * keep


def _kernel(gates: Tensor) -> "kernels.Cell | None":
    return kernels.load() if gates.dtype == torch.float32 and gates.device.type == "cpu" else None


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
