"""The scan of an LSTM layer on a GPU: each call computes a step of both directions, so that few kernels are started."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .loops import triton_kernels
from .lstm_cell import (
    FORGET_BIAS,
    Arrays,
    Clips,
    Gates,
    Tape,
    array,
    cell_backward_in_torch,
    cell_forward_in_torch,
    clip_in_place,
)

Result = TypeVar("Result")


class Replayed(Generic[Result]):
    """A function whose kernels are recorded at its second call, and then started by one call instead of hundreds.

    At each call the function must read and write the same memory, and start the same kernels. It may not wait for the
    GPU. All later calls return the tensors of the second one, with new values: copy what must stay.

    function: without arguments.
    """

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function, self._called = function, False
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> Result:
        """Compute the function."""
        if not self._called:  # compiles kernels and loads libraries, which can't be recorded
            self._called = True
            return self._function()
        if self._graph is None:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._result = self._function()
            self._graph = graph
        self._graph.replay()
        return self._result


def fused_cell(device: torch.device) -> Any:
    """Return the module of the fused cell; None: it does not run on the device. device: of the tensors."""
    return triton_kernels(f"{__package__}.gpu_cell", device)


def fits(x: Tensor) -> bool:
    """Whether a scan of an input runs here. x: the input."""
    return x.is_cuda


class GpuWorkspace(Arrays):
    """The arrays that all scans of a layer use, and the recorded calls that read and write them.

    A call is recorded for its arrays. If a scan has other sizes, there are new arrays, and new calls are recorded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.recorded: dict[tuple[Any, ...], Replayed[Any]] = {}


class _Scan(NamedTuple):
    """What the steps of a scan read and write. In all arrays of directions these are the first axis.

    tape: as `Tape` says, with one axis more, the first one. A step of a direction is contiguous.
    sums: *Shape:* (directions, batch, 4 dim), of one step.
    weight: *Shape:* (directions, input + projection_dim, 4 dim).
    bias: *Shape:* (directions, 1, 4 dim), with 1 added for the forget gate.
    w_p: *Shape:* (directions, dim, projection_dim); None: there is no projection.
    keep, low_keep: *Shape:* (steps, batch, 1), of the type of the cell state and of the multiplications; or None.
    """

    tape: Tape
    sums: Tensor
    weight: Tensor
    bias: Tensor
    w_p: Tensor | None
    keep: Tensor | None
    low_keep: Tensor | None

    @property
    def cell(self) -> Any:
        """The module of the fused cell if it fits the device and the types; else None."""
        return fused_cell(self.sums.device) if self.bias.dtype == torch.float32 else None

    def forward(self, clips: Clips) -> None:
        """Compute all steps."""
        tape, width, cell = self.tape, self.tape.hidden.shape[3], self.cell
        cell_forward = cell_forward_in_torch if cell is None else cell.cell_forward
        for t in range(tape.gates.shape[1]):
            previous = tape.inputs[:, t, :, -width:]
            previous.copy_(tape.hidden[:, t] if self.low_keep is None else tape.hidden[:, t] * self.low_keep[t])
            torch.bmm(tape.inputs[:, t], self.weight, out=self.sums)
            keep = None if self.keep is None else self.keep[t]
            state = tape.cells[:, t], keep, tape.cells[:, t + 1]
            cell_forward(self.sums, tape.gates[:, t], self.bias, *state, tape.outs[:, t], clips.cell)
            if self.w_p is None:
                tape.hidden[:, t + 1] = tape.outs[:, t]
            else:
                clip_in_place(torch.bmm(tape.outs[:, t], self.w_p, out=tape.hidden[:, t + 1]), clips.proj)

    def backward(self, clips: Clips, d_hidden: Tensor, d_cells: Tensor | None) -> list[Tensor | None]:
        """Return the gradients of the steps' inputs, weight, bias, w_p, h0 and c0. The tape's gates are overwritten.

        d_hidden: *Shape:* (directions, steps, batch, projection_dim), of the type of the multiplications.
        d_cells: *Shape:* (directions, steps or 1, batch, dim), of all cell states or of the last one; None: 0.
        """
        tape, width, d_gates = self.tape, self.tape.hidden.shape[3], self.tape.gates
        steps, cell = d_gates.shape[1], self.cell
        cell_backward = cell_backward_in_torch if cell is None else cell.cell_backward
        d_inputs = torch.empty_like(tape.inputs)
        d_proj = None if self.w_p is None else torch.empty_like(tape.hidden[:, 1:])
        d_h, d_c = torch.zeros_like(tape.hidden[:, 0]), torch.zeros_like(tape.cells[:, 0])
        for t in range(steps - 1, -1, -1):
            d_h = d_h + d_hidden[:, t]
            if d_cells is not None and t >= steps - d_cells.shape[1]:
                d_c = d_c + d_cells[:, t - steps]
            d_out = d_h
            if self.w_p is not None and d_proj is not None:
                d_proj[:, t] = stop_where_clipped(d_h, tape.hidden[:, t + 1], clips.proj)
                d_out = torch.bmm(d_proj[:, t], self.w_p.mT)
            state = tape.cells[:, t], None if self.keep is None else self.keep[t], tape.cells[:, t + 1]
            d_c = cell_backward(d_gates[:, t], *state, d_out, d_c, clips.cell)
            torch.bmm(d_gates[:, t], self.weight.mT, out=d_inputs[:, t])
            d_h = d_inputs[:, t, :, -width:]
            if self.low_keep is not None:
                d_h = d_h * self.low_keep[t]
        of_gates = d_gates.flatten(1, 2)
        d_weight, d_bias = torch.bmm(tape.inputs.flatten(1, 2).mT, of_gates), of_gates.sum(1, dtype=self.bias.dtype)
        d_w_p = None if d_proj is None else torch.bmm(tape.outs.flatten(1, 2).mT, d_proj.flatten(1, 2))
        return [d_inputs, d_weight, d_bias, d_w_p, d_h, d_c]


class GpuScan(torch.autograd.Function):
    """The operation of `lstm_scan` for all directions at once. It runs on any device, and is meant for GPUs."""

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
        low: torch.dtype,
        workspace: Arrays | None,
        all_cells: bool,
    ) -> tuple[Tensor, Tensor]:
        directions, steps, batch, n_in = x.shape
        dim, width, real = c0.shape[2], h0.shape[2], c0.dtype

        def new(name: str, dtype: torch.dtype, *shape: int) -> Tensor:
            return array(workspace, name, x, dtype, *shape)

        tape = Tape(
            inputs=new("inputs", low, directions, steps, batch, n_in + width),
            gates=new("gates", low, directions, steps, batch, 4 * dim),
            outs=new("outs", low, directions, steps, batch, dim),
            cells=new("cells", real, directions, steps + 1, batch, dim),
            hidden=new("hidden", low, directions, steps + 1, batch, width),
        )
        scan = _Scan(
            tape,
            new("sums", low, directions, batch, 4 * dim),
            new("weight", low, directions, n_in + width, 4 * dim),
            new("bias", real, directions, 1, 4 * dim),
            None if w_p is None else new("w_p", low, directions, dim, width),
            None if keep is None else new("keep", real, steps, batch, 1),
            None if keep is None else new("low_keep", low, steps, batch, 1),
        )
        tape.inputs[..., :n_in], tape.hidden[:, 0], tape.cells[:, 0] = x, h0, c0
        scan.weight[:, :n_in], scan.weight[:, n_in:], scan.bias[:, 0] = w_x, w_h, bias
        Gates.of(scan.bias).forget.add_(FORGET_BIAS)
        for stored, given in ((scan.w_p, w_p), (scan.keep, keep), (scan.low_keep, keep)):
            if stored is not None and given is not None:
                stored.copy_(given)
        key = *(values.data_ptr() for values in (*tape, *scan[1:]) if values is not None), tuple(x.shape), low, clips
        _replayed(workspace, ("forward", *key), lambda: scan.forward(clips))
        ctx.clips, ctx.dtype, ctx.workspace, ctx.n_in, ctx.key = clips, x.dtype, workspace, n_in, key
        ctx.save_for_backward(*tape, *scan[1:])
        ctx.set_materialize_grads(False)
        # copies: the caller may change what it gets, and the tape is needed in the backward pass
        return tape.hidden[:, 1:].to(x.dtype, copy=True), tape.cells[:, 1 if all_cells else -1 :].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_hidden: Tensor | None, d_cells: Tensor | None) -> tuple[Tensor | None, ...]:
        n, saved, workspace, clips = len(Tape._fields), ctx.saved_tensors, ctx.workspace, ctx.clips
        scan = _Scan(Tape(*saved[:n]), *saved[n:])
        if workspace is None:
            scan = scan._replace(tape=scan.tape._replace(gates=scan.tape.gates.clone()))
        hidden = scan.tape.hidden[:, 1:]
        low_d_hidden = array(workspace, "d_hidden", hidden, hidden.dtype, *hidden.shape)
        low_d_hidden.copy_(torch.zeros_like(hidden) if d_hidden is None else d_hidden)
        if d_cells is None:
            key = ("backward", low_d_hidden.data_ptr(), *ctx.key)
            gradients = _replayed(workspace, key, lambda: scan.backward(clips, low_d_hidden, None))
        else:
            gradients = scan.backward(clips, low_d_hidden, d_cells)
        d_inputs, d_weight, d_bias, d_w_p, d_h, d_c = (
            None if gradient is None else gradient.to(ctx.dtype, copy=True) for gradient in gradients
        )
        assert d_inputs is not None
        assert d_weight is not None
        n_in = ctx.n_in
        return d_inputs[..., :n_in], d_weight[:, :n_in], d_weight[:, n_in:], d_bias, d_w_p, d_h, d_c, *[None] * 5


def stop_where_clipped(gradient: Tensor, clipped: Tensor, bound: float | None) -> Tensor:
    """Return the gradient of values before they were clipped to [-bound, bound]: 0 if they were clipped.

    gradient: of the clipped values.
    clipped: the values after they were clipped.
    bound: of the values; None: they were not clipped.
    """
    if bound is None:
        return gradient
    bound = torch.tensor(bound, dtype=clipped.dtype, device="cpu").item()  # rounded to the type that was clipped
    stopped: Tensor = torch.ops.aten.hardtanh_backward(gradient, clipped, -bound, bound)
    return stopped


def _replayed(workspace: Arrays | None, key: tuple[Any, ...], function: Any) -> Any:
    """Return what a function returns, recorded if the workspace is one for that.

    key: what the function depends on: the places of the arrays, but not their values.
    function: reads and writes arrays of the workspace.
    """
    if not isinstance(workspace, GpuWorkspace):
        return function()
    if key not in workspace.recorded:
        workspace.recorded[key] = Replayed(function)
    return workspace.recorded[key]()
