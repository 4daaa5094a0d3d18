"""The parts of an LSTM layer, and a step of its cell with the gradient: in compiled loops, kernels for GPUs, or torch.

The cell state is float32 (float64 if all arrays are). What the matrix multiplications read and write may be bfloat16;
sums and activations are then computed in float32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..formats.options import BiLMOptions
from ..kernels import address, bound
from ..kernels.calls import GATE_F, GATES
from .loops import NAMES, loops, optional_address, triton_kernels

FORGET_BIAS = 1.0  # TensorFlow's LSTMCell(forget_bias=1.0), with which all ELMo files were trained; it is in no file


class LstmState(NamedTuple):
    """The state of all layers and directions.

    h: *Shape:* (n_layers, 2, batch, projection_dim), the outputs of the layers without skip connections.
    c: *Shape:* (n_layers, 2, batch, dim), the cell states.
    """

    h: Tensor
    c: Tensor

    def rows(self, batch: int, zero: LstmState) -> LstmState:
        """Return the state of the first `batch` rows. If there are fewer, the others come from `zero`, of that many."""
        return LstmState(*(torch.cat([s[:, :, :batch], z[:, :, s.shape[2] :]], 2) for s, z in zip(self, zero)))

    def followed_by(self, before: LstmState) -> LstmState:
        """Return this state, followed by the rows of the state before that a smaller batch did not change."""
        return LstmState(*(torch.cat([s, b[:, :, s.shape[2] :]], 2) for s, b in zip(self, before)))


class LayerWeights(NamedTuple):
    """The parameters of one layer, of both directions. Those of one direction have no first axis, or one of size 1.

    input_weight, recurrent_weight: *Shape:* (2, projection_dim, 4 dim).
    bias: *Shape:* (2, 4 dim), without the forget bias.
    projection: *Shape:* (2, dim, projection_dim); None: there is none.
    """

    input_weight: Tensor
    recurrent_weight: Tensor
    bias: Tensor
    projection: Tensor | None

    @property
    def matrices(self) -> list[Tensor]:
        """Input weight, recurrent weight and, if there is one, the projection."""
        return [matrix for matrix in (self.input_weight, self.recurrent_weight, self.projection) if matrix is not None]

    def direction(self, d: int) -> LayerWeights:
        """Return views of the parameters of one direction, without gradients. 0: forward, 1: backward."""
        projection = None if self.projection is None else self.projection.detach()[d]
        w_x, w_h, bias = (part.detach()[d] for part in (self.input_weight, self.recurrent_weight, self.bias))
        return LayerWeights(w_x, w_h, bias, projection)


class Clips(NamedTuple):
    """The cell state and the projected output of a layer are clipped to [-bound, bound]; None: they are not clipped."""

    cell: float | None
    proj: float | None

    @classmethod
    def of(cls, options: BiLMOptions) -> Clips:
        """Return those of a biLM."""
        return cls(options.cell_clip, options.proj_clip)


class Gates(NamedTuple):
    """The parts of an array that has values of all gates, in the order of the files."""

    input: Tensor
    candidate: Tensor
    forget: Tensor
    output: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Gates:
        """Return views of the gates' parts, *Shape:* (..., dim) each. values: *Shape:* (..., 4 dim)."""
        return cls(*values.chunk(GATES, -1))


class Scan(NamedTuple):
    """What the steps of one direction read and write: the tape (the first five arrays), weights and masks.

    The rows are those of the batch, and the arrays are row-major. In a scan of all directions these are the first axis
    of all arrays but `keep` and `keep_h`.

    inputs: *Shape:* (steps, rows, input + projection_dim), at each step x followed by the previous state.
    gates: *Shape:* (steps, rows, 4 dim), the activations of the gates.
    outs: *Shape:* (steps, rows, dim), the outputs of the cell before the projection.
    cells: *Shape:* (steps + 1, rows, dim), the cell states; index 0 is the one before the first step.
    hidden: *Shape:* (steps + 1, rows, projection_dim), the states h; index 0 is the one before the first step.
    weight: *Shape:* (input + projection_dim, 4 dim).
    bias: *Shape:* (4 dim,), with 1 added for the forget gate.
    w_p: *Shape:* (dim, projection_dim), the projection; None: there is none.
    keep: *Shape:* (steps, batch, 1), 0 if the cell state is forgotten before a step, else 1; None: it never is.
    keep_h: the same for the state h.
    """

    inputs: Tensor
    gates: Tensor
    outs: Tensor
    cells: Tensor
    hidden: Tensor
    weight: Tensor
    bias: Tensor
    w_p: Tensor | None
    keep: Tensor | None
    keep_h: Tensor | None

    def of(self, d: int) -> Scan:
        """Return the part of one direction."""
        parts: dict[str, Any] = {name: None if part is None else part[d] for name, part in zip(self._fields, self[:8])}
        return self._replace(**parts)


def clip_in_place(x: Tensor, clip: float | None) -> Tensor:
    """Clip values to [-clip, clip] in place, and return them."""
    return x if clip is None else x.clamp_(-clip, clip)


def has_skip(options: BiLMOptions, layer: int) -> bool:
    """Return whether a layer adds its input to its output: every one but the first, as in bilm-tf, if they are used.

    The state that the next step starts from is the output without it.
    """
    return layer > 0 and options.use_skip_connections


def with_forget_bias(bias: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a copy of a layer's bias, *Shape:* (..., 4 dim), with 1 added to that of the forget gate."""
    bias = bias.to(dtype, copy=True)
    Gates.of(bias).forget.add_(FORGET_BIAS)
    return bias


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
    """Compute one step: c' = clip(sigmoid(f) keep c + sigmoid(i) tanh(j)) and out = sigmoid(o) tanh(c').

    i, j, f and o are the sums of input gate, candidate, forget gate and output gate, bias included (Sak et al. 2014,
    without peepholes). All arrays but `keep` may have the directions as their first axis.

    sums, gates: *Shape:* (batch, 4 dim), the sums without the bias; and what receives the activations.
    bias: *Shape:* (4 dim,), with 1 added for the forget gate.
    cell_in, cell_out: *Shape:* (batch, dim), c, the previous cell state; and what receives c', the new one.
    keep: *Shape:* (batch, 1), 0 if the state is forgotten before the step, else 1; None: it is not forgotten.
    out: *Shape:* (batch, dim), receives the output, before the projection.
    """
    library = loops(gates) if gates.dim() == 2 else None
    if library is not None:
        (batch, dim), real = out.shape, gates.dtype
        getattr(library, f"cell_forward_{NAMES[real]}")(
            batch,
            dim,
            address("sums", sums, real, (batch, 4 * dim)),
            address("gates", gates, real, (batch, 4 * dim)),
            address("bias", bias, torch.float32, (4 * dim,)),
            address("cell_in", cell_in, torch.float32, (batch, dim)),
            optional_address("keep", keep, torch.float32, (batch, 1)),
            address("cell_out", cell_out, torch.float32, (batch, dim)),
            address("out", out, real, (batch, dim)),
            bound(clip),
        )
        return
    fused = triton_kernels(gates.device) if cell_in.dtype == torch.float32 else None
    if fused is not None:
        fused.cell_forward(sums, gates, bias, cell_in, keep, cell_out, out, clip)
        return
    active = sums + bias
    previous = cell_in if keep is None else cell_in * keep
    out.copy_(cell_in_torch(active, previous, cell_out, clip, one_sigmoid=True))
    gates.copy_(active)


def cell_in_torch(
    sums: Tensor, previous: Tensor, cell: Tensor, clip: float | None, *, one_sigmoid: bool = False
) -> Tensor:
    """Return the output of one step by the equations of `cell_forward`, *Shape:* (batch, dim), without gradients.

    sums: those of the gates, bias included. They are overwritten with the activations.
    cell: receives the new cell state. It may be `previous`.
    one_sigmoid: compute forget gate and output gate, which lie side by side, in one call. The last bit of a result can
        depend on this, because torch computes the ends of rows with other instructions.
    """
    i, j, f, o = Gates.of(sums)
    for gates in (i, sums[..., GATE_F * cell.shape[-1] :]) if one_sigmoid else (i, f, o):
        gates.sigmoid_()
    torch.mul(previous, f, out=cell).addcmul_(i, j.tanh_())
    return torch.tanh(clip_in_place(cell, clip)).mul_(o)


def cell_backward(
    gates: Tensor,
    cell_in: Tensor,
    keep: Tensor | None,
    cell_out: Tensor,
    d_out: Tensor,
    d_cell: Tensor,
    clip: float | None,
) -> Tensor:
    """Return the gradient of the previous cell state from those of the output and of the new cell state.

    The arrays are those of `cell_forward`. `gates` is overwritten with the gradients of the sums, `d_cell` may be too.
    """
    library = loops(gates) if gates.dim() == 2 else None
    if library is not None:
        (batch, dim), real = d_out.shape, gates.dtype
        d_out = d_out.to(real)  # without a projection it is float32 if `keep` is
        getattr(library, f"cell_backward_{NAMES[real]}")(
            batch,
            dim,
            address("gates", gates, real, (batch, 4 * dim)),
            address("cell_in", cell_in, torch.float32, (batch, dim)),
            optional_address("keep", keep, torch.float32, (batch, 1)),
            address("cell_out", cell_out, torch.float32, (batch, dim)),
            address("d_out", d_out, real, (batch, dim)),
            address("d_cell", d_cell, torch.float32, (batch, dim)),
            bound(clip),
        )
        return d_cell
    fused = triton_kernels(gates.device) if cell_in.dtype == torch.float32 else None
    if fused is not None:
        d_previous: Tensor = fused.cell_backward(gates, cell_in, keep, cell_out, d_out, d_cell, clip)
        return d_previous
    aten, (d_i, d_j, d_f, d_o) = torch.ops.aten, Gates.of(gates)
    i, j, f, o = Gates.of(gates.to(cell_out.dtype, copy=True))
    d_out, tanh_c = d_out.to(cell_out.dtype), torch.tanh(cell_out)
    d_o.copy_(aten.sigmoid_backward(d_out * tanh_c, o))
    d_cell = d_cell + aten.tanh_backward(d_out * o, tanh_c)
    if clip is not None:
        d_cell = aten.hardtanh_backward(d_cell, cell_out, -clip, clip)
    d_i.copy_(aten.sigmoid_backward(d_cell * j, i))
    d_j.copy_(aten.tanh_backward(d_cell * i, j))
    d_f.copy_(aten.sigmoid_backward(d_cell * (cell_in if keep is None else cell_in * keep), f))
    d_cell = d_cell * f
    return d_cell if keep is None else d_cell * keep
