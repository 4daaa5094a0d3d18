"""The scan of an LSTM layer for training steps of one size, many times: what `lstm_scan` of `modules.lstm` computes.

It multiplies in bfloat16 if it is told to, on AMX if that fits, forgets the state where a stream says so, and uses the
same memory in each update. So on a GPU its kernels are recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..kernels.calls import padded
from ..modules import lstm
from ..modules.lstm_cell import Clips, LayerWeights, LstmState, Scan, with_forget_bias
from . import lstm_amx
from .workspace import Workspace


def window_scans(keep: Tensor, matmul_dtype: torch.dtype, workspaces: Sequence[Workspace]) -> list[lstm.LayerScan]:
    """Return a `window_scan` for each layer, as `scan_layers` expects them."""
    return [partial(window_scan, keep=keep, matmul_dtype=matmul_dtype, workspace=each) for each in workspaces]


def window_scan(
    x: Tensor,
    weights: LayerWeights,
    state: LstmState,
    clips: Clips,
    *,
    keep: Tensor,
    matmul_dtype: torch.dtype,
    workspace: Workspace,
) -> tuple[Tensor, Tensor]:
    """Run one layer over a window of steps, and return its states. It can be differentiated once.

    x, weights, state, clips: as for `lstm_scan`.
    keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1.
    matmul_dtype: type of the matrix multiplications and of the values between them. bfloat16 is much faster on
        processors that support it. Cell state, sums and weights have their own type in any case.
    workspace: that of the layer and its directions. The next call overwrites what this one returned (but not on a
        GPU), and its backward pass must come before.

    Returns h, *Shape:* (directions, steps, batch, projection_dim), after each step, and c after the last one, *Shape:*
    (directions, 1, batch, dim): its rows are not contiguous, and copying those of all steps takes time.
    """
    with lstm.on_device_of(x):
        settings = (clips, matmul_dtype, workspace)
        result: tuple[Tensor, Tensor] = _WindowScan.apply(x, *weights, *state, keep, settings)
    return result


class _WindowScan(torch.autograd.Function):
    """The operation of `window_scan`: all directions at once and recorded, or each by itself, on AMX if that fits."""

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
        keep: Tensor,
        settings: tuple[Clips, torch.dtype, Workspace],
    ) -> tuple[Tensor, Tensor]:
        clips, low, workspace = settings
        (directions, steps, batch, n_in), dim, width, real = x.shape, c0.shape[2], h0.shape[2], c0.dtype
        at_once, amx = lstm.runs_at_once(x), lstm_amx.fits(x, h0, c0, w_p, low)
        rows = padded(batch) if amx else batch

        def new(name: str, dtype: torch.dtype, *shape: int) -> Tensor:
            return workspace.array(name, x, dtype, *shape)

        scan = Scan(
            inputs=new("inputs", low, directions, steps, rows, n_in + width),
            gates=new("gates", low, directions, steps, rows, 4 * dim),
            outs=new("outs", low, directions, steps, rows, dim),
            cells=new("cells", real, directions, steps + 1, rows, dim),
            hidden=new("hidden", low, directions, steps + 1, rows, width),
            weight=new("weight", low, directions, n_in + width, 4 * dim),
            bias=new("bias", real, directions, 4 * dim),
            w_p=None if w_p is None else new("w_p", low, directions, dim, width),
            keep=new("keep", real, steps, batch, 1),
            keep_h=new("keep_h", low if at_once else real, steps, batch, 1),
        )
        cells = lstm_amx.by_rows(scan.cells) if amx else scan.cells[..., None, :]
        scan.inputs[:, :, :batch, :n_in], scan.hidden[:, 0, :batch] = x, h0
        cells[:, 0, :batch] = c0.view_as(cells[:, 0, :batch])
        scan.weight[:, :n_in], scan.weight[:, n_in:] = w_x, w_h
        scan.bias.copy_(with_forget_bias(bias, real))
        for stored, given in ((scan.w_p, w_p), (scan.keep, keep), (scan.keep_h, keep)):
            if stored is not None and given is not None:
                stored.copy_(given)
        ctx.settings, ctx.dtype, ctx.n_in, ctx.batch = settings, x.dtype, n_in, batch
        ctx.at_once, ctx.amx = at_once, amx
        if at_once:
            ctx.key = *(part.data_ptr() for part in scan if part is not None), tuple(x.shape), low, clips
            workspace.replayed(("forward", *ctx.key), lambda: lstm.forward_steps(scan, clips))
        elif amx:
            for d in range(directions):
                lstm_amx.forward(scan.of(d), clips, batch, workspace)
        else:
            lstm.forward_steps(scan, clips)
        ctx.save_for_backward(*scan)
        ctx.set_materialize_grads(False)
        hidden, last = scan.hidden[:, 1:, :batch], cells[:, -1:, :batch].flatten(3)
        if at_once:  # copies: the caller may change what it gets, and the backward pass reads the tape
            return hidden.to(x.dtype, copy=True), last.clone()
        return hidden.to(x.dtype), last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        scan, (clips, low, workspace), n_in = Scan(*ctx.saved_tensors), ctx.settings, ctx.n_in
        if ctx.at_once:
            hidden = scan.hidden[:, 1:]
            above = workspace.array("d_hidden", hidden, low, *hidden.shape)
            above.copy_(torch.zeros_like(hidden) if d_hidden is None else d_hidden)
            if d_cells is None:
                key = ("backward", above.data_ptr(), *ctx.key)
                of_all = workspace.replayed(key, lambda: lstm.backward_steps(scan, clips, above, None))
            else:
                of_all = lstm.backward_steps(scan, clips, above, d_cells)
            order = torch.contiguous_format
            gradients = [
                None if part is None else part.to(ctx.dtype, copy=True, memory_format=order) for part in of_all
            ]
        else:
            if ctx.amx:
                parts = []
                for d in range(len(scan.weight)):
                    d_h, d_c = (None if gradient is None else gradient[d] for gradient in (d_hidden, d_cells))
                    parts.append(lstm_amx.backward(scan.of(d), clips, d_h, d_c, ctx.batch, workspace))
                of_all = lstm.stacked(parts)
            else:
                of_all = lstm.backward_steps(scan, clips, d_hidden, d_cells)
            gradients = [None if part is None else part.to(ctx.dtype) for part in of_all]
        d_x, d_weight, *others = gradients
        assert d_weight is not None
        return d_x, d_weight[:, :n_in], d_weight[:, n_in:], *others, None, None
