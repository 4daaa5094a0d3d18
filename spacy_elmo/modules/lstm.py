"""The LSTM layers of both directions, with projection, clips and skip connections, from the module to the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..formats.options import BiLMOptions
from .lstm_cell import (
    Clips,
    LayerWeights,
    LstmState,
    Scan,
    cell_backward,
    cell_forward,
    clip_in_place,
    has_skip,
    with_forget_bias,
)

LayerScan = Callable[[Tensor, LayerWeights, LstmState, Clips], tuple[Tensor, Tensor]]  # as `lstm_scan`
Gradients = Sequence[Tensor | None]  # of x, weight, bias, w_p, h0 and c0; that of w_p may be None


class LstmLayer(nn.Module):
    """The parameters of one layer, with the directions stacked: index 0 is forward, 1 is backward."""

    def __init__(self, options: BiLMOptions, projection: bool) -> None:
        super().__init__()
        dim, width = options.dim, options.projection_dim
        self.input_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.recurrent_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.bias = nn.Parameter(torch.empty(2, 4 * dim))
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if projection else None


class BiLstm(nn.Module):
    """The LSTM layers of both directions.

    projection: whether the cells' outputs are projected; None: only if dim != projection_dim.
    """

    def __init__(self, options: BiLMOptions, projection: bool | None = None) -> None:
        super().__init__()
        if projection is None:
            projection = options.has_lstm_projection
        self.options = options
        self.layers = nn.ModuleList(LstmLayer(options, projection) for _ in range(options.n_layers))

    def weights(self) -> list[LayerWeights]:
        """Return the parameters of each layer, as `scan_layers` expects them."""
        return [
            LayerWeights(layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)
            for layer in self.layers
            if isinstance(layer, LstmLayer)
        ]

    def zero_state(self, batch: int) -> LstmState:
        """Return the state of `batch` rows before the first word, all zeros.

        The cell state is float32 at least, also if the weights are bfloat16 or float16.
        """
        weight = self.weights()[0].bias
        layers, dim, width = self.options.n_layers, self.options.dim, self.options.projection_dim
        cell_type = torch.promote_types(weight.dtype, torch.float32)
        cells = weight.new_zeros(layers, 2, batch, dim, dtype=cell_type)
        return LstmState(weight.new_zeros(layers, 2, batch, width), cells)

    def forward(self, x: Tensor, lengths: Tensor, state: LstmState) -> tuple[list[Tensor], LstmState]:
        """Run all layers over rows of different lengths. The backward direction starts at each row's own end.

        x: *Shape:* (batch, steps, projection_dim).
        lengths: *Shape:* (batch,), number of steps of each row, at least 1.
        state: the state to start from.

        Returns each layer's output, *Shape:* (batch, steps, 2 * projection_dim), forward and then backward, and the
        state at each row's own end. Outputs after a row's end have no meaning.
        """
        batch, steps, _ = x.shape
        positions, rows = torch.arange(steps, device=x.device)[None], torch.arange(batch, device=x.device)[:, None]
        reverse = lengths[:, None] - 1 - positions  # each row from its own end; what is after the end stays there
        reverse = torch.where(reverse >= 0, reverse, positions)
        both = torch.stack([x, x[rows, reverse]]).transpose(1, 2)
        outputs, hs, cs = scan_layers(self.options, self.weights(), both, state)
        layers = []
        for output in outputs:
            forward, backward = output.transpose(1, 2)
            layers.append(torch.cat([forward, backward[rows, reverse]], 2))
        at_end = (slice(None), lengths - 1, rows[:, 0])
        return layers, LstmState(torch.stack([h[at_end] for h in hs]), torch.stack([c[at_end] for c in cs]))


def scan_layers(
    options: BiLMOptions,
    layers: Sequence[LayerWeights],
    x: Tensor,
    state: LstmState,
    *,
    scans: Sequence[LayerScan] | None = None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Run all layers over a window of steps.

    layers: the weights of each layer, for these directions.
    x: *Shape:* (directions, steps, batch, projection_dim), the input of the first layer. Each direction is in the order
        in which it reads.
    state: the state before the first step, of the same directions.
    scans: what runs each layer; None: `lstm_scan`. Pretraining gives faster ones.
    drop: applies dropout to the input of each layer; None: no dropout.

    Returns three lists with an item for each layer, of the values after each step: the layer's output with its skip
    connection and the state h, *Shape:* (directions, steps, batch, projection_dim) both, and the cell state c, *Shape:*
    (directions, steps, batch, dim).
    """
    clips = Clips.of(options)
    outputs, hs, cs = [], [], []
    for k, layer in enumerate(layers):
        scan = lstm_scan if scans is None else scans[k]
        layer_input = x if drop is None else drop(x)
        h, c = scan(layer_input, layer, LstmState(state.h[k], state.c[k]), clips)
        x = h + layer_input if has_skip(options, k) else h  # as in bilm-tf, the input is added after dropout
        outputs.append(x)
        hs.append(h)
        cs.append(c)
    return outputs, hs, cs


def lstm_scan(x: Tensor, weights: LayerWeights, state: LstmState, clips: Clips) -> tuple[Tensor, Tensor]:
    """Run one layer over a window of steps, and return its states. It can be differentiated once.

    x: *Shape:* (directions, steps, batch, input), each direction in the order in which it reads. It may have another
        width than projection_dim. Its type is that of the matrix multiplications; the cell state has its own.
    weights: of these directions. Without a projection the cell's output is not clipped either.
    state: the state to start from, *Shape:* (directions, batch, projection_dim) and (directions, batch, dim).

    Returns h, *Shape:* (directions, steps, batch, projection_dim), and c, *Shape:* (directions, steps, batch, dim),
    after each step.
    """
    with on_device_of(x):
        result: tuple[Tensor, Tensor] = _LstmScan.apply(x, *weights, *state, clips)
    return result


def on_device_of(x: Tensor) -> AbstractContextManager[Any]:
    """Return a context in which the GPU of a tensor is the current one, on which kernels run."""
    return torch.cuda.device_of(x) if x.is_cuda else nullcontext()


class _LstmScan(torch.autograd.Function):
    """The operation of `lstm_scan`."""

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
        clips: Clips,
    ) -> tuple[Tensor, Tensor]:
        (directions, steps, batch, n_in), dim, width = x.shape, c0.shape[2], h0.shape[2]
        scan = Scan(
            inputs=x.new_empty(directions, steps, batch, n_in + width),
            gates=x.new_empty(directions, steps, batch, 4 * dim),
            outs=x.new_empty(directions, steps, batch, dim),
            cells=c0.new_empty(directions, steps + 1, batch, dim),
            hidden=x.new_empty(directions, steps + 1, batch, width),
            weight=torch.cat([w_x, w_h], 1).to(x.dtype),
            bias=with_forget_bias(bias, c0.dtype),
            w_p=None if w_p is None else w_p.to(x.dtype, copy=True, memory_format=torch.contiguous_format),
            keep=None,
            keep_h=None,
        )
        scan.inputs[..., :n_in], scan.hidden[:, 0], scan.cells[:, 0] = x, h0, c0
        forward_steps(scan, clips)
        ctx.save_for_backward(*scan)
        ctx.set_materialize_grads(False)
        ctx.clips, ctx.n_in = clips, n_in
        return scan.hidden[:, 1:], scan.cells[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        scan = Scan(*ctx.saved_tensors)
        scan = scan._replace(gates=scan.gates.clone())  # there may be another backward pass
        d_x, d_weight, *others = backward_steps(scan, ctx.clips, d_hidden, d_cells)
        assert d_weight is not None
        return d_x, d_weight[:, : ctx.n_in], d_weight[:, ctx.n_in :], *others, None


def runs_at_once(x: Tensor) -> bool:
    """Return whether a step of all directions is computed at once, as on a GPU, so that few kernels are started."""
    return x.is_cuda


def forward_steps(scan: Scan, clips: Clips) -> None:
    """Compute all steps of all directions, and fill the tape.

    x in `inputs` and index 0 of `cells` and `hidden` are set already.
    """
    for part in [scan] if runs_at_once(scan.inputs) else [scan.of(d) for d in range(len(scan.weight))]:
        _forward(part, clips)


def backward_steps(scan: Scan, clips: Clips, d_hidden: Tensor | None, d_cells: Tensor | None) -> Gradients:
    """Return the gradients of x, weight, bias, w_p, h0 and c0. The tape's gates are overwritten.

    d_hidden: *Shape:* (directions, steps, batch, projection_dim), gradients of the outputs; None: 0.
    d_cells: *Shape:* (directions, steps or 1, batch, dim), gradients of all cell states, or of the last one; None: 0.
    """
    above = None if d_hidden is None else d_hidden.to(scan.hidden.dtype), d_cells
    if runs_at_once(scan.inputs):
        return _backward(scan, clips, *above)
    parts = []
    for d in range(len(scan.weight)):
        d_h, d_c = (None if gradient is None else gradient[d] for gradient in above)
        parts.append(_backward(scan.of(d), clips, d_h, d_c))
    return stacked(parts)


def stacked(parts: Sequence[Sequence[Any]]) -> Gradients:
    """Return the gradients of all directions from those of each."""
    if len(parts) == 1:
        return [None if gradient is None else gradient[None] for gradient in parts[0]]
    return [None if same[0] is None else torch.stack(same) for same in zip(*parts)]


def _forward(scan: Scan, clips: Clips) -> None:
    """Compute all steps of one direction, or of all directions at once.

    x and the previous state are multiplied in one matrix multiplication for each step, whose sums are still in the
    cache when the cell reads them. With one for the x of all steps, whose sums are then added, it takes 1.1 to 1.9
    times as long with 256 rows (measured).
    """
    inputs, gates, outs, cells, hidden = (part.unbind(-3) for part in scan[:5])
    (multiply, bias), width = _of_directions(scan), scan.hidden.shape[-1]
    sums = scan.gates.new_empty(gates[0].shape)
    for t, out in enumerate(outs):
        keep, keep_h = (None if part is None else part[t] for part in (scan.keep, scan.keep_h))
        inputs[t][..., -width:].copy_(hidden[t] if keep_h is None else hidden[t] * keep_h)
        multiply(inputs[t], scan.weight, out=sums)
        cell_forward(sums, gates[t], bias, cells[t], keep, cells[t + 1], out, clips.cell)
        if scan.w_p is None:
            hidden[t + 1].copy_(out)
        else:
            clip_in_place(multiply(out, scan.w_p, out=hidden[t + 1]), clips.proj)


def _backward(scan: Scan, clips: Clips, d_hidden: Tensor | None, d_cells: Tensor | None) -> Gradients:
    """Compute the gradients of one direction, or of all directions at once."""
    _, gates, _, cells, hidden = (part.unbind(-3) for part in scan[:5])
    (multiply, _), steps, width = _of_directions(scan), len(gates), scan.hidden.shape[-1]
    above = None if d_hidden is None else d_hidden.unbind(-3)
    above_cells = () if d_cells is None else d_cells.unbind(-3)
    d_inputs, d_proj = torch.empty_like(scan.inputs), torch.empty_like(scan.hidden[..., 1:, :, :])
    weight, w_p = _transposed(scan.weight), None if scan.w_p is None else _transposed(scan.w_p)
    d_h, d_c = torch.zeros_like(hidden[0]), torch.zeros_like(cells[0])
    for t in range(steps - 1, -1, -1):
        keep, keep_h = (None if part is None else part[t] for part in (scan.keep, scan.keep_h))
        if above is not None:
            d_h = d_h + above[t]
        if t >= steps - len(above_cells):
            d_c = d_c + above_cells[t - steps]
        if w_p is None:
            d_out = d_h.contiguous()
        else:
            d_step = d_proj.select(-3, t)
            d_step.copy_(_stop_where_clipped(d_h, hidden[t + 1], clips.proj))
            d_out = multiply(d_step, w_p)
        d_c = cell_backward(gates[t], cells[t], keep, cells[t + 1], d_out, d_c, clips.cell)
        d_h = multiply(gates[t], weight, out=d_inputs.select(-3, t))[..., -width:]
        if keep_h is not None:
            d_h = d_h * keep_h
    d_weight, d_bias = _weight_gradient(scan.inputs, scan.gates, scan.bias.dtype)
    d_w_p = None if w_p is None else _weight_gradient(d_proj, scan.outs, scan.bias.dtype)[0].mT
    return d_inputs[..., :-width], d_weight, d_bias, d_w_p, d_h, d_c


def _of_directions(scan: Scan) -> tuple[Any, Tensor]:
    """Return the matrix multiplication, and the bias for the sums, of one direction or of all directions at once."""
    return (torch.mm, scan.bias) if scan.weight.dim() == 2 else (torch.bmm, scan.bias[:, None])


def _transposed(matrix: Tensor) -> Tensor:
    """Return the transposed matrix. On the CPU, multiplication by a view of it has two thirds of a copy's speed."""
    return matrix.mT if matrix.is_cuda else matrix.mT.contiguous()


def _stop_where_clipped(gradient: Tensor, clipped: Tensor, bound: float | None) -> Tensor:
    """Return the gradient of values before they were clipped to [-bound, bound]: 0 if they were clipped."""
    if bound is None:
        return gradient
    bound = torch.tensor(bound, dtype=clipped.dtype, device="cpu").item()  # rounded to the type that was clipped
    stopped: Tensor = torch.ops.aten.hardtanh_backward(gradient, clipped, -bound, bound)
    return stopped


def _weight_gradient(left: Tensor, right: Tensor, real: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return left^T right, summed over all steps, and the sum of right's rows: gradients of a weight and its bias."""
    left, right = left.flatten(-3, -2), right.flatten(-3, -2)
    if right.dim() == 3:
        return torch.bmm(left.mT, right), right.sum(1, dtype=real)
    # The transposed matrix is copied, because multiplication by a transposed view has two thirds of the speed. The row
    # of ones gives the sum of right's rows, much faster than sum() does.
    rows = right.new_ones(left.shape[1] + 1, len(right))
    rows[:-1] = left.t()
    gradient = rows @ right
    return gradient[:-1], gradient[-1]
