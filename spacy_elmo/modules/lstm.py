"""The stack of LSTM layers of both directions, with projection, clips and skip connections."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..formats.options import BiLMOptions
from ..kernels.calls import padded
from . import lstm_amx as lstm_amx
from . import lstm_gpu as gpu_scan
from .lstm_cell import (
    Arrays,
    Clips,
    LayerWeights,
    LstmState,
    Tape,
    add_skip,
    array,
    cell_backward,
    cell_forward,
    clip_in_place,
    with_forget_bias,
)
from .lstm_gpu import stop_where_clipped


def _forward(tape: Tape, weight: Tensor, bias: Tensor, w_p: Tensor | None, keep: Tensor | None, clips: Clips) -> None:
    """Run the forward pass of one direction, and fill the tape.

    x and the previous state are multiplied in one matrix multiplication for each step. Its sums are still in the cache
    when the cell reads them. One matrix multiplication for the x of all steps, whose sums are then added, takes 1.1 to
    1.9 times as long with 256 rows (measured).

    tape: x in `inputs` and index 0 of `cells` and `hidden` are set already.
    weight: *Shape:* (input + projection_dim, 4 dim).
    bias: *Shape:* (4 dim,), with 1 added for the forget gate.
    w_p: *Shape:* (dim, projection_dim), the projection; None: there is none.
    keep, clips: as in `lstm_scan`.
    """
    steps, width = len(tape.outs), tape.hidden.shape[2]
    sums = torch.empty_like(tape.gates[0])
    for t in range(steps):
        keep_step, previous = None if keep is None else keep[t], tape.inputs[t][:, -width:]
        previous.copy_(tape.hidden[t] if keep_step is None else tape.hidden[t] * keep_step)
        torch.mm(tape.inputs[t], weight, out=sums)
        cell_forward(sums, tape.gates[t], bias, tape.cells[t], keep_step, tape.cells[t + 1], tape.outs[t], clips.cell)
        if w_p is None:
            tape.hidden[t + 1] = tape.outs[t]
        else:
            clip_in_place(torch.mm(tape.outs[t], w_p, out=tape.hidden[t + 1]), clips.proj)


def _weight_gradient(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return left^T right, summed over all steps, and the sum of right's rows: gradients of a weight and its bias.

    left, right: *Shape:* (steps, batch, n) and (steps, batch, m).

    Returns *Shape:* (n, m) and (m,).
    """
    right = right.flatten(0, 1)
    # The transposed matrix is copied, because multiplication by a transposed view has two thirds of the speed. The row
    # of ones gives the sum of right's rows, much faster than sum() does.
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
    """Run the backward pass of one direction, and return the gradients. The tape's gates are overwritten.

    d_hidden: *Shape:* (steps, batch, projection_dim), gradients of the outputs; None: 0.
    d_cells: *Shape:* (steps or 1, batch, dim), gradients of all cell states, or of the last one; None: 0.

    The other parameters are those of `_forward`. Returns the gradients of x, weight, bias, w_p, h0 and c0.
    """
    steps, width = len(tape.gates), tape.hidden.shape[2]
    d_gates, d_proj = tape.gates, torch.empty_like(tape.hidden[1:])
    d_inputs = torch.empty_like(tape.inputs)
    transposed = weight.t().contiguous()
    w_p_transposed = None if w_p is None else w_p.t().contiguous()
    d_h, d_c = torch.zeros_like(tape.hidden[0]), torch.zeros_like(tape.cells[0])
    for t in range(steps - 1, -1, -1):
        keep_step = None if keep is None else keep[t]
        if d_hidden is not None:
            d_h = d_h + d_hidden[t]
        if d_cells is not None and t >= steps - len(d_cells):
            d_c = d_c + d_cells[t - steps]
        if w_p_transposed is None:
            d_out = d_h.contiguous()
        else:
            d_proj[t] = stop_where_clipped(d_h, tape.hidden[t + 1], clips.proj)
            d_out = d_proj[t] @ w_p_transposed
        d_c = cell_backward(tape.gates[t], tape.cells[t], keep_step, tape.cells[t + 1], d_out, d_c, clips.cell)
        d_h = torch.mm(d_gates[t], transposed, out=d_inputs[t])[:, -width:]
        if keep_step is not None:
            d_h = d_h * keep_step
    d_weight, d_bias = _weight_gradient(tape.inputs, d_gates)
    d_w_p = None if w_p is None else _weight_gradient(d_proj, tape.outs)[0].t()
    return d_inputs[..., :-width], d_weight, d_bias, d_w_p, d_h, d_c


Workspace = Arrays


class _Settings(NamedTuple):
    """The arguments of `lstm_scan` that have no gradient."""

    clips: Clips
    matmul_dtype: torch.dtype
    workspace: Workspace | None
    all_cells: bool


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0][None] if len(tensors) == 1 else torch.stack(list(tensors))


class _LstmScan(torch.autograd.Function):
    """The operation of `lstm_scan`. It uses the compiled calls of `amx` if they fit the sizes and types."""

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
        settings: _Settings,
    ) -> tuple[Tensor, Tensor]:
        clips, matmul_dtype, workspace, all_cells = settings
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
            d_h, d_c = (None if gradient is None else gradient[d] for gradient in (d_hidden, d_cells))
            if ctx.amx:
                of_direction = lstm_amx.backward(
                    tape, weight[d], w_p[d], keep, ctx.clips, d_h, d_c, ctx.batch, ctx.workspace
                )
            else:
                low_d_h, low_w_p = None if d_h is None else d_h.to(weight.dtype), None if w_p is None else w_p[d]
                of_direction = _backward(tape, weight[d], low_w_p, keep, ctx.clips, low_d_h, d_c)
            gradients.append(of_direction)
        d_x, d_weight, d_bias, d_w_p, d_h0, d_c0 = (
            None if parts[0] is None else _stack([part for part in parts if part is not None]).to(ctx.dtype)
            for parts in zip(*gradients)
        )
        assert d_weight is not None
        d_w_x, d_w_h = d_weight[:, : ctx.n_in], d_weight[:, ctx.n_in :]
        return d_x, d_w_x, d_w_h, d_bias, d_w_p, d_h0, d_c0, None, None


def lstm_scan(
    x: Tensor,
    weights: LayerWeights,
    state: LstmState,
    keep: Tensor | None,
    clips: Clips,
    *,
    matmul_dtype: torch.dtype | None = None,
    workspace: Workspace | None = None,
    all_cells: bool = True,
) -> tuple[Tensor, Tensor]:
    """Run one layer over a window of steps, and return its states. It can be differentiated once.

    x: *Shape:* (directions, steps, batch, input), each direction in the order in which it reads.
    weights: of these directions. The input may have another width than projection_dim. The forget bias is added here.
        Without a projection the cell's output is not clipped either.
    state: the state to start from, *Shape:* (directions, batch, projection_dim) and (directions, batch, dim).
    keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1; None: it is never forgotten.
    clips: bounds of the layer.
    matmul_dtype: type of the matrix multiplications and of the values between them; None: the type of x. bfloat16 is
        much faster on processors that support it. Cell state, sums and weights have their own type in any case.
    workspace: arrays that all calls of the same sizes use, because new memory costs more time than the computation.
        The next call overwrites what this one returned (but not on a GPU), and its backward pass must come before;
        None: new memory.
    all_cells: whether c is returned for all steps. The rows of c are not contiguous, and copying them takes time.

    Returns h, *Shape:* (directions, steps, batch, projection_dim), and c, *Shape:* (directions, steps, batch, dim),
    after each step; without all_cells c after the last step only, *Shape:* (directions, 1, batch, dim).
    """
    settings = _Settings(clips, matmul_dtype or x.dtype, workspace, all_cells)
    result: tuple[Tensor, Tensor]
    if gpu_scan.fits(x):
        with torch.cuda.device_of(x):  # kernels run on the current GPU
            result = gpu_scan.GpuScan.apply(x, *weights, *state, keep, *settings)
    else:
        result = _LstmScan.apply(x, *weights, *state, keep, settings)
    return result


def scan_layers(
    options: BiLMOptions,
    layers: Sequence[LayerWeights],
    x: Tensor,
    state: LstmState,
    keep: Tensor | None = None,
    *,
    drop: Callable[[Tensor], Tensor] | None = None,
    matmul_dtype: torch.dtype | None = None,
    workspaces: Sequence[Workspace] | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Run a stack of layers over a window of steps.

    options: clips and skip connections.
    layers: the weights of each layer, for these directions.
    x: *Shape:* (directions, steps, batch, projection_dim), the input of the first layer. Each direction is in the order
        in which it reads.
    state: the state before the first step, of the same directions.
    keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1; None: it is never forgotten.
    drop: applies dropout to the input of each layer; None: no dropout.
    matmul_dtype: type of the matrix multiplications; None: the type of x.
    workspaces: memory for each layer that the next call uses again, as in `lstm_scan`; None: new memory.

    Returns three lists with an item for each layer, of the values after each step: the layer's output with its skip
    connection and the state h, *Shape:* (directions, steps, batch, projection_dim) both, and the cell state c, *Shape:*
    (directions, steps, batch, dim). With workspaces, c is that after the last step only, (directions, 1, batch, dim).
    """
    clips = Clips.of(options)
    outputs, hs, cs = [], [], []
    for k, layer in enumerate(layers):
        workspace = None if workspaces is None else workspaces[k]
        layer_input = x if drop is None else drop(x)
        h, c = lstm_scan(
            layer_input,
            layer,
            LstmState(state.h[k], state.c[k]),
            keep,
            clips,
            matmul_dtype=matmul_dtype,
            workspace=workspace,
            all_cells=workspace is None,
        )
        x = add_skip(options, k, h, layer_input)  # as in bilm-tf, the input is added after dropout
        outputs.append(x)
        hs.append(h)
        cs.append(c)
    return outputs, hs, cs


class LstmLayer(nn.Module):
    """The parameters of one layer, with the directions stacked: index 0 is forward, 1 is backward.

    options: the biLM's sizes.
    projection: whether the layer has a projection.
    """

    def __init__(self, options: BiLMOptions, projection: bool) -> None:
        super().__init__()
        dim, width = options.dim, options.projection_dim
        self.input_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.recurrent_weight = nn.Parameter(torch.empty(2, width, 4 * dim))
        self.bias = nn.Parameter(torch.empty(2, 4 * dim))
        self.projection = nn.Parameter(torch.empty(2, dim, width)) if projection else None

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise as TensorFlow does by default: Glorot uniform, biases 0.

        In bilm-tf's files the weights of input and previous state are one matrix, W_0. So its size gives their bound.

        generator: source of the random numbers; None: torch's default generator.
        """
        _, width, gates = self.input_weight.shape
        bound = math.sqrt(6.0 / (2 * width + gates))
        nn.init.uniform_(self.input_weight, -bound, bound, generator=generator)
        nn.init.uniform_(self.recurrent_weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = math.sqrt(6.0 / (self.projection.shape[1] + self.projection.shape[2]))
            nn.init.uniform_(self.projection, -bound, bound, generator=generator)


class BiLstm(nn.Module):
    """The stack of LSTM layers of both directions.

    options: the biLM's sizes, clips and skip connections.
    projection: whether the cells' outputs are projected; None: only if dim != projection_dim.
    """

    def __init__(self, options: BiLMOptions, projection: bool | None = None) -> None:
        super().__init__()
        if projection is None:
            projection = options.has_lstm_projection
        self.options = options
        self.layers = nn.ModuleList(LstmLayer(options, projection) for _ in range(options.n_layers))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Initialise all layers for training.

        generator: source of the random numbers; None: torch's default generator.
        """
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            layer.reset_parameters(generator)

    def zero_state(self, batch: int) -> LstmState:
        """Return the state before the first word, all zeros. batch: number of rows.

        The cell state is float32 at least, also if the weights are bfloat16 or float16.
        """
        weight = self.weights()[0].bias
        layers, dim, width = self.options.n_layers, self.options.dim, self.options.projection_dim
        cell_type = torch.promote_types(weight.dtype, torch.float32)
        cells = weight.new_zeros(layers, 2, batch, dim, dtype=cell_type)
        return LstmState(weight.new_zeros(layers, 2, batch, width), cells)

    def weights(self) -> list[LayerWeights]:
        """Return the parameters of each layer, as `scan_layers` expects them."""
        return [
            LayerWeights(layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)
            for layer in self.layers
            if isinstance(layer, LstmLayer)
        ]

    def scan(
        self, x: Tensor, state: LstmState, keep: Tensor | None = None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Run all layers over a window of steps, as `scan_layers` does, and return what it returns.

        x: *Shape:* (2, steps, batch, projection_dim), each direction in the order in which it reads.
        state: the state before the first step.
        keep: *Shape:* (steps, batch, 1), 0 if the state is forgotten before a step, else 1; None: it never is.
        """
        return scan_layers(self.options, self.weights(), x, state, keep)

    def forward(self, x: Tensor, lengths: Tensor, state: LstmState) -> tuple[list[Tensor], LstmState]:
        """Run all layers over rows of different lengths. The backward direction starts at each row's own end.

        x: *Shape:* (batch, steps, projection_dim).
        lengths: *Shape:* (batch,), number of steps of each row, at least 1.
        state: the state to start from.

        Returns each layer's output, *Shape:* (batch, steps, 2 * projection_dim), forward and then backward, and the
        state at each row's own end. Outputs after a row's end have no meaning.
        """
        batch, steps, _ = x.shape
        reverse = reversing_index(lengths, steps)
        rows = torch.arange(batch, device=x.device)[:, None]
        both = torch.stack([x, x[rows, reverse]]).transpose(1, 2)
        outputs, hs, cs = self.scan(both, state)
        layers = []
        for output in outputs:
            forward, backward = output.transpose(1, 2)
            layers.append(torch.cat([forward, backward[rows, reverse]], 2))
        at_end = (slice(None), lengths - 1, rows[:, 0])
        return layers, LstmState(torch.stack([h[at_end] for h in hs]), torch.stack([c[at_end] for c in cs]))


def reversing_index(lengths: Tensor, steps: int) -> Tensor:
    """Return an index that reverses rows of different lengths, *Shape:* (batch, steps).

    It is length - 1 - t at position t of a row, and t at positions after the row's end.

    lengths: *Shape:* (batch,), number of steps of each row.
    steps: number of steps of the longest row, at least.
    """
    positions = torch.arange(steps, device=lengths.device)[None, :]
    reversed_ = lengths[:, None] - 1 - positions
    return torch.where(reversed_ >= 0, reversed_, positions)
