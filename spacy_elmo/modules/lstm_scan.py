"""The LSTM with projection and clips as one differentiable operation over a window of steps.

Both directions run side by side; the backward pass is written out, so that the weights' gradients are a few large
products instead of one small product per step. Gates stand in the files' order i, j, f, o. The forget bias of 1 is
added here and is in no file.
"""

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


# steps whose rows are multiplied together for the weights' gradients: enough rows for the product to run at full rate,
# few enough to lie in the second-level cache still (measured: 130 against 60 GFLOP/s for all 20 steps at once)
CHUNK_ROWS = 128


def _stop_where_clipped(gradient: Tensor, clipped: Tensor, bound: float | None) -> Tensor:
    return gradient if bound is None else torch.ops.aten.hardtanh_backward(gradient, clipped, -bound, bound)


class _Tape(NamedTuple):
    """What one direction keeps for its backward pass.

    inputs: *Shape:* (steps, batch, input + projection_dim), x beside the state it met; gates: (steps, batch, 4 dim),
    activated; outs: (steps, batch, dim), before the projection; cells, hidden: (steps + 1, batch, dim or
    projection_dim), row 0 is the state before the first step.
    """

    inputs: Tensor
    gates: Tensor
    outs: Tensor
    cells: Tensor
    hidden: Tensor

    def direction(self, d: int) -> "_Tape":
        return _Tape(*(tensor[d] for tensor in self))


def _forward(tape: _Tape, weight: Tensor, bias: Tensor, w_p: Tensor | None, keep: Tensor | None, clips: Clips) -> None:
    """Run one direction: fill the tape, whose inputs hold x and whose cells and hidden hold the first state."""
    steps, _, dim = tape.outs.shape
    width = tape.hidden.shape[2]
    bias = bias.clone()
    bias[2 * dim : 3 * dim] += FORGET_BIAS
    for t in range(steps):
        kept, met = None if keep is None else keep[t], tape.inputs[t][:, -width:]
        met.copy_(tape.hidden[t] if kept is None else tape.hidden[t] * kept)
        torch.addmm(bias, tape.inputs[t], weight, out=tape.gates[t])
        cell_forward(tape.gates[t], tape.cells[t], kept, tape.cells[t + 1], tape.outs[t], clips.cell)
        if w_p is None:
            tape.hidden[t + 1] = tape.outs[t]
        else:
            hidden = torch.mm(tape.outs[t], w_p, out=tape.hidden[t + 1])
            if clips.proj is not None:
                hidden.clamp_(-clips.proj, clips.proj)


def _backward(
    tape: _Tape,
    weight: Tensor,
    w_p: Tensor | None,
    keep: Tensor | None,
    clips: Clips,
    d_hidden: Tensor | None,
    d_cells: Tensor | None,
    d_weight: Tensor,
    d_wp: Tensor | None,
    d_inputs: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one direction back: add to d_weight and d_wp, fill d_inputs (like tape.inputs); d_bias, d_h0, d_c0."""
    steps, batch, dim = tape.outs.shape
    width = tape.hidden.shape[2]
    chunk = max(1, CHUNK_ROWS // max(1, batch))
    d_gates, d_proj = torch.empty_like(tape.gates), torch.empty_like(tape.hidden[1:])
    transposed = weight.t().contiguous()  # a product with a transposed view is three times slower
    w_p_transposed = None if w_p is None else w_p.t().contiguous()
    d_h, d_c = tape.hidden.new_zeros(batch, width), tape.cells.new_zeros(batch, dim)
    for t in range(steps - 1, -1, -1):
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
        d_c = cell_backward(tape.gates[t], tape.cells[t], kept, tape.cells[t + 1], d_out, d_c, d_gates[t], clips.cell)
        d_h = torch.mm(d_gates[t], transposed, out=d_inputs[t])[:, -width:]
        if kept is not None:
            d_h = d_h * kept
        if t % chunk == 0:
            rows = slice(t, t + chunk)
            d_weight.addmm_(tape.inputs[rows].flatten(0, 1).t(), d_gates[rows].flatten(0, 1))
            if d_wp is not None:
                d_wp.addmm_(tape.outs[rows].flatten(0, 1).t(), d_proj[rows].flatten(0, 1))
    return d_gates.sum((0, 1)), d_h, d_c


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
    ) -> tuple[Tensor, Tensor]:
        _, steps, batch, n_in = x.shape
        dim, width = c0.shape[2], h0.shape[2]
        tape = _Tape(
            inputs=x.new_empty(2, steps, batch, n_in + width),
            gates=x.new_empty(2, steps, batch, 4 * dim),
            outs=x.new_empty(2, steps, batch, dim),
            cells=x.new_empty(2, steps + 1, batch, dim),
            hidden=x.new_empty(2, steps + 1, batch, width),
        )
        tape.inputs[..., :n_in] = x
        tape.cells[:, 0], tape.hidden[:, 0] = c0, h0
        weight = torch.cat([w_x, w_h], 1)
        for d in (0, 1):
            _forward(tape.direction(d), weight[d], bias[d], None if w_p is None else w_p[d], keep, clips)
        ctx.clips = clips
        ctx.save_for_backward(weight, w_p, keep, *tape)
        ctx.set_materialize_grads(False)
        return tape.hidden[:, 1:], tape.cells[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        weight, w_p, keep, *saved = ctx.saved_tensors
        tape = _Tape(*saved)
        d_weight, d_wp = torch.zeros_like(weight), None if w_p is None else torch.zeros_like(w_p)
        d_inputs = torch.empty_like(tape.inputs)
        firsts = []
        for d in (0, 1):
            firsts.append(
                _backward(
                    tape.direction(d),
                    weight[d],
                    None if w_p is None else w_p[d],
                    keep,
                    ctx.clips,
                    None if d_hidden is None else d_hidden[d],
                    None if d_cells is None else d_cells[d],
                    d_weight[d],
                    None if d_wp is None else d_wp[d],
                    d_inputs[d],
                )
            )
        d_bias, d_h0, d_c0 = (torch.stack(pair) for pair in zip(*firsts))
        n_in = d_weight.shape[1] - d_h0.shape[2]
        d_x = d_inputs[..., :n_in]
        return d_x, d_weight[:, :n_in], d_weight[:, n_in:], d_bias, d_wp, d_h0, d_c0, None, None


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
) -> tuple[Tensor, Tensor]:
    """Run one layer's two directions over a window of steps.

    x: *Shape:* (2, steps, batch, input), each direction in its own reading order.
    w_x, w_h: *Shape:* (2, input, 4 dim), (2, projection_dim, 4 dim); bias: (2, 4 dim); w_p: (2, dim, projection_dim)
        or None, where the cell's output is not projected (proj clip then does nothing).
    h0, c0: *Shape:* (2, batch, projection_dim), (2, batch, dim): the state to start from.
    keep: *Shape:* (steps, batch, 1), 0 where the state is forgotten before a step, else 1; None: kept throughout.
    Returns h (2, steps, batch, projection_dim) and c (2, steps, batch, dim) after each step. Differentiable once.
    """
    result: tuple[Tensor, Tensor] = _LstmScan.apply(x, w_x, w_h, bias, w_p, h0, c0, keep, clips)
    return result
