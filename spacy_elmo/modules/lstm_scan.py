"""The LSTM with projection and clips as one differentiable operation over a window of steps.

The directions run side by side; the backward pass is written out, so that the weights' gradients are a few large
products instead of one small product per step. Gates stand in the files' order i, j, f, o. The forget bias of 1 is
added here and is in no file.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .lstm_cell import cell_backward, cell_forward

FORGET_BIAS = 1.0  # TensorFlow's LSTMCell(forget_bias=1.0), with which all ELMo files were trained


class Clips(NamedTuple):
    """Bounds of the cell state and of the projected output; None: no bound."""

    cell: float | None
    proj: float | None


def _stop_where_clipped(gradient: Tensor, clipped: Tensor, bound: float | None) -> Tensor:
    return gradient if bound is None else torch.ops.aten.hardtanh_backward(gradient, clipped, -bound, bound)


class _Tape(NamedTuple):
    """What one direction keeps for its backward pass.

    inputs: *Shape:* (steps, batch, input + projection_dim), x beside the state that it met; gates: (steps, batch,
    4 dim), activated; outs: (steps, batch, dim), before the projection; cells, hidden: (steps + 1, batch, dim or
    projection_dim), row 0 is the state before the first step.
    """

    inputs: Tensor
    gates: Tensor
    outs: Tensor
    cells: Tensor
    hidden: Tensor


def _forward(tape: _Tape, weight: Tensor, bias: Tensor, w_p: Tensor | None, keep: Tensor | None, clips: Clips) -> None:
    """Run one direction: fill the tape, whose x and first states are there.

    x and state go through one product a step: its sums are still in the cache when the cell reads them (measured: the
    input's products of all steps at once, and the state's added to them, take 1.1 to 1.9 times as long).
    """
    steps, _, dim = tape.outs.shape
    width = tape.hidden.shape[2]
    bias = bias.clone()
    bias[2 * dim : 3 * dim] += FORGET_BIAS
    sums = torch.empty_like(tape.gates[0])
    for t in range(steps):
        kept, met = None if keep is None else keep[t], tape.inputs[t][:, -width:]
        met.copy_(tape.hidden[t] if kept is None else tape.hidden[t] * kept)
        torch.mm(tape.inputs[t], weight, out=sums)
        cell_forward(sums, tape.gates[t], bias, tape.cells[t], kept, tape.cells[t + 1], tape.outs[t], clips.cell)
        if w_p is None:
            tape.hidden[t + 1] = tape.outs[t]
        else:
            hidden = torch.mm(tape.outs[t], w_p, out=tape.hidden[t + 1])
            if clips.proj is not None:
                hidden.clamp_(-clips.proj, clips.proj)


def _products(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """left^T right over all steps, and the sum of right's rows.

    left, right: *Shape:* (steps, batch, n), (steps, batch, m); returns (n, m), (m,).
    """
    right = right.flatten(0, 1)
    # copied: a product with a transposed view runs at two thirds of the speed; a row of ones sums far faster than sum()
    rows = right.new_ones(left.shape[2] + 1, len(right))
    rows[:-1] = left.flatten(0, 1).t()
    product = rows @ right
    return product[:-1], product[-1]


def _backward(
    tape: _Tape,
    weight: Tensor,
    w_p: Tensor | None,
    keep: Tensor | None,
    clips: Clips,
    d_hidden: Tensor | None,
    d_cells: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor]:
    """Run one direction back, overwriting the tape's gates: d_x, d_weight, d_bias, d_w_p, d_h0, d_c0."""
    width = tape.hidden.shape[2]
    d_gates, d_proj = tape.gates, torch.empty_like(tape.hidden[1:])
    d_inputs = torch.empty_like(tape.inputs)
    transposed = weight.t().contiguous()
    w_p_transposed = None if w_p is None else w_p.t().contiguous()
    d_h, d_c = torch.zeros_like(tape.hidden[0]), torch.zeros_like(tape.cells[0])
    for t in range(len(tape.gates) - 1, -1, -1):
        kept = None if keep is None else keep[t]
        if d_hidden is not None:
            d_h = d_h + d_hidden[t]
        if d_cells is not None:
            d_c = d_c + d_cells[t]
        if w_p_transposed is None:
            d_out = d_h.contiguous()
        else:
            d_proj[t] = _stop_where_clipped(d_h, tape.hidden[t + 1], clips.proj)
            d_out = d_proj[t] @ w_p_transposed
        d_c = cell_backward(tape.gates[t], tape.cells[t], kept, tape.cells[t + 1], d_out, d_c, clips.cell)
        d_h = torch.mm(d_gates[t], transposed, out=d_inputs[t])[:, -width:]
        if kept is not None:
            d_h = d_h * kept
    d_weight, d_bias = _products(tape.inputs, d_gates)
    d_w_p = None if w_p is None else _products(d_proj, tape.outs)[0].t()
    return d_inputs[..., :-width], d_weight, d_bias, d_w_p, d_h, d_c


Workspace = dict[str, Tensor]


def _array(workspace: Workspace | None, name: str, like: Tensor, dtype: torch.dtype, *shape: int) -> Tensor:
    """An empty array, on the device of `like`; that of the call before, where there is a workspace that has it."""
    kept = None if workspace is None else workspace.get(name)
    if kept is None or kept.shape != shape or kept.dtype != dtype:
        kept = like.new_empty(shape, dtype=dtype)
        if workspace is not None:
            workspace[name] = kept
    return kept


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0][None] if len(tensors) == 1 else torch.stack(list(tensors))


class _LstmScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w_x: Tensor,
        w_h: Tensor,
        bias: Tensor,
        w_p: Tensor | None,
        h0: Tensor,
        c0: Tensor,
        keep: Tensor | None,
        clips: Clips,
        products: torch.dtype,
        workspace: Workspace | None,
    ) -> tuple[Tensor, Tensor]:
        directions, steps, batch, n_in = x.shape
        dim, width = c0.shape[2], h0.shape[2]
        weight, low_w_p = torch.cat([w_x, w_h], 1).to(products), None if w_p is None else w_p.to(products)
        tapes = []
        for d in range(directions):
            tape = _Tape(
                inputs=_array(workspace, f"inputs {d}", x, products, steps, batch, n_in + width),
                gates=_array(workspace, f"gates {d}", x, products, steps, batch, 4 * dim),
                outs=_array(workspace, f"outs {d}", x, products, steps, batch, dim),
                cells=_array(workspace, f"cells {d}", x, c0.dtype, steps + 1, batch, dim),
                hidden=_array(workspace, f"hidden {d}", x, products, steps + 1, batch, width),
            )
            tape.inputs[..., :n_in] = x[d]
            tape.cells[0], tape.hidden[0] = c0[d], h0[d]
            _forward(tape, weight[d], bias[d], None if low_w_p is None else low_w_p[d], keep, clips)
            tapes.append(tape)
        ctx.clips, ctx.dtype, ctx.once, ctx.n_in = clips, x.dtype, workspace is not None, n_in
        ctx.save_for_backward(weight, low_w_p, keep, *[tensor for tape in tapes for tensor in tape])
        ctx.set_materialize_grads(False)
        hidden, cells = _stack([tape.hidden[1:] for tape in tapes]), _stack([tape.cells[1:] for tape in tapes])
        return hidden.to(x.dtype), cells

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        weight, w_p, keep, *saved = ctx.saved_tensors
        n = len(_Tape._fields)
        gradients = []
        for d in range(len(weight)):
            tape = _Tape(*saved[d * n : (d + 1) * n])
            gradients.append(
                _backward(
                    tape if ctx.once else tape._replace(gates=tape.gates.clone()),
                    weight[d],
                    None if w_p is None else w_p[d],
                    keep,
                    ctx.clips,
                    None if d_hidden is None else d_hidden[d].to(weight.dtype),
                    None if d_cells is None else d_cells[d],
                )
            )
        d_x, d_weight, d_bias, d_w_p, d_h0, d_c0 = (
            None if parts[0] is None else _stack([part for part in parts if part is not None]).to(ctx.dtype)
            for parts in zip(*gradients)
        )
        assert d_weight is not None
        return d_x, d_weight[:, : ctx.n_in], d_weight[:, ctx.n_in :], d_bias, d_w_p, d_h0, d_c0, None, None, None, None


def lstm_scan(
    x: Tensor,
    w_x: Tensor,
    w_h: Tensor,
    bias: Tensor,
    w_p: Tensor | None,
    h0: Tensor,
    c0: Tensor,
    keep: Tensor | None,
    clips: Clips,
    products: torch.dtype | None = None,
    workspace: Workspace | None = None,
) -> tuple[Tensor, Tensor]:
    """Run one layer's directions over a window of steps.

    x: *Shape:* (directions, steps, batch, input), each direction in its own reading order.
    w_x, w_h: *Shape:* (directions, input, 4 dim), (directions, projection_dim, 4 dim); bias: (directions, 4 dim);
        w_p: (directions, dim, projection_dim) or None, where the cell's output is not projected (proj clip then does
        nothing).
    h0, c0: *Shape:* (directions, batch, projection_dim), (directions, batch, dim): the state to start from.
    keep: *Shape:* (steps, batch, 1), 0 where the state is forgotten before a step, else 1; None: kept throughout.
    products: type of the matrix products and of what lies between them (bfloat16 is far faster on processors that
        have it); the cell state, sums and weights stay as they are. None: x's type.
    workspace: arrays that calls of the same sizes share, filled by the first: large fresh ones cost more time than
        what is done with them. What a call returned, and its one backward pass, are then over when the next begins.
    Returns h (directions, steps, batch, projection_dim) and c (directions, steps, batch, dim) after each step.
    Differentiable once.
    """
    result: tuple[Tensor, Tensor] = _LstmScan.apply(
        x, w_x, w_h, bias, w_p, h0, c0, keep, clips, products or x.dtype, workspace
    )
    return result
