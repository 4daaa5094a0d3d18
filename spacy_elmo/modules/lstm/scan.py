"""The LSTM with projection and clips as one differentiable operation over a window of steps.

The directions run side by side; the backward pass is written out, so that the weights' gradients are a few
large matrix multiplications instead of a small one per step.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ...kernels.constants import padded
from . import amx as lstm_amx
from .cell import Clips, cell_backward, cell_forward, clip_in_place, with_forget_bias
from .tape import Arrays, Tape, array


def _stop_where_clipped(gradient: Tensor, clipped: Tensor, bound: float | None) -> Tensor:
    if bound is None:
        return gradient
    bound = torch.tensor(bound, dtype=clipped.dtype).item()  # as it stands in what it clipped
    stopped: Tensor = torch.ops.aten.hardtanh_backward(gradient, clipped, -bound, bound)
    return stopped


def _forward(tape: Tape, weight: Tensor, bias: Tensor, w_p: Tensor | None, keep: Tensor | None, clips: Clips) -> None:
    """Run one direction: fill the tape, whose x and first states are there. bias: the forget bias included.

    Input and state go through one matrix multiplication per step, whose sums are still in the cache when the cell reads
    them. To multiply the inputs of all steps at once, and to add the sums of the state to them, takes 1.1 to 1.9 times
    as long at 256 rows (measured).
    """
    steps, width = len(tape.outs), tape.hidden.shape[2]
    sums = torch.empty_like(tape.gates[0])
    for t in range(steps):
        kept, met = None if keep is None else keep[t], tape.inputs[t][:, -width:]
        met.copy_(tape.hidden[t] if kept is None else tape.hidden[t] * kept)
        torch.mm(tape.inputs[t], weight, out=sums)
        cell_forward(sums, tape.gates[t], bias, tape.cells[t], kept, tape.cells[t + 1], tape.outs[t], clips.cell)
        if w_p is None:
            tape.hidden[t + 1] = tape.outs[t]
        else:
            clip_in_place(torch.mm(tape.outs[t], w_p, out=tape.hidden[t + 1]), clips.proj)


def _weight_gradient(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """left^T right over all steps, and the sum of right's rows.

    left, right: *Shape:* (steps, batch, n), (steps, batch, m); returns (n, m), (m,).
    """
    right = right.flatten(0, 1)
    # a copy, because a multiplication with a transposed view runs at two thirds of the speed; the row of ones sums far
    # faster than sum()
    rows = right.new_ones(left.shape[2] + 1, len(right))
    rows[:-1] = left.flatten(0, 1).t()
    gradient = rows @ right
    return gradient[:-1], gradient[-1]


def _backward(
    tape: Tape,
    weight: Tensor,
    w_p: Tensor | None,
    keep: Tensor | None,
    clips: Clips,
    d_hidden: Tensor | None,
    d_cells: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor]:
    """Run one direction back, overwriting the tape's gates: d_x, d_weight, d_bias, d_w_p, d_h0, d_c0.

    d_hidden: *Shape:* (steps, batch, projection_dim); d_cells: (steps or 1, batch, dim), of the last steps.
    """
    steps, width = len(tape.gates), tape.hidden.shape[2]
    d_gates, d_proj = tape.gates, torch.empty_like(tape.hidden[1:])
    d_inputs = torch.empty_like(tape.inputs)
    transposed = weight.t().contiguous()
    w_p_transposed = None if w_p is None else w_p.t().contiguous()
    d_h, d_c = torch.zeros_like(tape.hidden[0]), torch.zeros_like(tape.cells[0])
    for t in range(steps - 1, -1, -1):
        kept = None if keep is None else keep[t]
        if d_hidden is not None:
            d_h = d_h + d_hidden[t]
        if d_cells is not None and t >= steps - len(d_cells):
            d_c = d_c + d_cells[t - steps]
        if w_p_transposed is None:
            d_out = d_h.contiguous()
        else:
            d_proj[t] = _stop_where_clipped(d_h, tape.hidden[t + 1], clips.proj)
            d_out = d_proj[t] @ w_p_transposed
        d_c = cell_backward(tape.gates[t], tape.cells[t], kept, tape.cells[t + 1], d_out, d_c, clips.cell)
        d_h = torch.mm(d_gates[t], transposed, out=d_inputs[t])[:, -width:]
        if kept is not None:
            d_h = d_h * kept
    d_weight, d_bias = _weight_gradient(tape.inputs, d_gates)
    d_w_p = None if w_p is None else _weight_gradient(d_proj, tape.outs)[0].t()
    return d_inputs[..., :-width], d_weight, d_bias, d_w_p, d_h, d_c


Workspace = Arrays


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
        matmul_dtype: torch.dtype,
        workspace: Workspace | None,
        all_cells: bool,
    ) -> tuple[Tensor, Tensor]:
        directions, steps, batch, n_in = x.shape
        dim, width = c0.shape[2], h0.shape[2]
        weight = torch.cat([w_x.to(matmul_dtype), w_h.to(matmul_dtype)], 1)
        low_w_p = None if w_p is None else w_p.to(matmul_dtype).contiguous()
        bias = with_forget_bias(bias, c0.dtype)
        amx = lstm_amx.fits(x, h0, c0, w_p, matmul_dtype)
        if amx and keep is not None:
            keep = keep.to(c0.dtype).contiguous()
        rows = padded(batch) if amx else batch
        tapes, all_c = [], []
        for d in range(directions):
            tape = Tape(
                inputs=array(workspace, f"inputs {d}", x, matmul_dtype, steps, rows, n_in + width),
                gates=array(workspace, f"gates {d}", x, matmul_dtype, steps, rows, 4 * dim),
                outs=array(workspace, f"outs {d}", x, matmul_dtype, steps, rows, dim),
                cells=array(workspace, f"cells {d}", x, c0.dtype, steps + 1, rows, dim),
                hidden=array(workspace, f"hidden {d}", x, matmul_dtype, steps + 1, rows, width),
            )
            tape.inputs[:, :batch, :n_in] = x[d]
            tape.hidden[0, :batch] = h0[d]
            cells = lstm_amx.by_rows(tape.cells) if amx else tape.cells[..., None, :]
            cells[0, :batch] = c0[d].view_as(cells[0, :batch])
            if amx and low_w_p is not None:
                lstm_amx.forward(tape, weight[d], bias[d], low_w_p[d], keep, clips, batch, workspace)
            else:
                _forward(tape, weight[d], bias[d], None if low_w_p is None else low_w_p[d], keep, clips)
            all_c.append(cells[1 if all_cells else -1 :, :batch].flatten(2))
            tapes.append(tape)
        ctx.clips, ctx.dtype, ctx.once, ctx.n_in = clips, x.dtype, workspace is not None, n_in
        ctx.amx, ctx.workspace, ctx.batch = amx, workspace, batch
        ctx.save_for_backward(weight, low_w_p, keep, *[tensor for tape in tapes for tensor in tape])
        ctx.set_materialize_grads(False)
        return _stack([tape.hidden[1:, :batch] for tape in tapes]).to(x.dtype), _stack(all_c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        weight, w_p, keep, *saved = ctx.saved_tensors
        n = len(Tape._fields)
        gradients = []
        for d in range(len(weight)):
            tape = Tape(*saved[d * n : (d + 1) * n])
            if not ctx.once:
                tape = tape._replace(gates=tape.gates.clone())
            d_h, d_c = (None if given is None else given[d] for given in (d_hidden, d_cells))
            if ctx.amx:
                found = lstm_amx.backward(tape, weight[d], w_p[d], keep, ctx.clips, d_h, d_c, ctx.batch, ctx.workspace)
            else:
                low_d_h, low_w_p = None if d_h is None else d_h.to(weight.dtype), None if w_p is None else w_p[d]
                found = _backward(tape, weight[d], low_w_p, keep, ctx.clips, low_d_h, d_c)
            gradients.append(found)
        d_x, d_weight, d_bias, d_w_p, d_h0, d_c0 = (
            None if parts[0] is None else _stack([part for part in parts if part is not None]).to(ctx.dtype)
            for parts in zip(*gradients)
        )
        assert d_weight is not None
        d_w_x, d_w_h = d_weight[:, : ctx.n_in], d_weight[:, ctx.n_in :]
        return d_x, d_w_x, d_w_h, d_bias, d_w_p, d_h0, d_c0, None, None, None, None, None


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
    matmul_dtype: torch.dtype | None = None,
    workspace: Workspace | None = None,
    all_cells: bool = True,
) -> tuple[Tensor, Tensor]:
    """Run one layer's directions over a window of steps.

    x: *Shape:* (directions, steps, batch, input), each direction in its own reading order.
    w_x, w_h: *Shape:* (directions, input, 4 dim), (directions, projection_dim, 4 dim); bias: (directions, 4 dim);
        w_p: (directions, dim, projection_dim) or None, where the cell's output is not projected (proj clip then does
        nothing).
    h0, c0: *Shape:* (directions, batch, projection_dim), (directions, batch, dim): the state to start from.
    keep: *Shape:* (steps, batch, 1), 0 where the state is forgotten before a step, else 1; None: kept throughout.
    matmul_dtype: type of the matrix multiplications and of the values between them; bfloat16 is far faster on
        processors that have it. The cell state, the sums and the weights keep their own type. None: the type of x.
    workspace: arrays that calls of the same sizes share, filled by the first: large fresh ones cost more time than
        what is done with them. What a call returned, and its one backward pass, are then over when the next begins.
    Returns h (directions, steps, batch, projection_dim) and c (directions, steps, batch, dim) after each step, or c
    (directions, 1, batch, dim) after the last alone, unless all_cells: they lie scattered, and gathering takes time.
    Differentiable once.
    """
    result: tuple[Tensor, Tensor] = _LstmScan.apply(
        x, w_x, w_h, bias, w_p, h0, c0, keep, clips, matmul_dtype or x.dtype, workspace, all_cells
    )
    return result
