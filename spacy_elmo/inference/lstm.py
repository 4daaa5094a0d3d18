"""The interface that runs the LSTM layers of one direction, and the choice between its implementations.

No other module chooses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import kernels
from ..formats.options import BiLMOptions
from ..kernels.calls import AMX_SIZE_MULTIPLE, AVX512_SIZE_MULTIPLE, GATES, INPUTS_ALIGNMENT, UNITS, LayerCall, padded
from ..modules.loops import address, address_of_rows, bound, loops
from ..modules.lstm_cell import (
    Clips,
    LayerWeights,
    LstmState,
    cell_in_torch,
    clip_in_place,
    has_skip,
    with_forget_bias,
)
from .linear import PrepackedLinear, joined, split
from .packing import Buffers, Chunk, Index, Packing, Plan, Plans, in_large_pages


class Axes(NamedTuple):
    """How a matrix is packed: its rows and its columns are each split into several axes, which are then reordered.

    rows: the sizes into which the rows are split, for `Tensor.unflatten`.
    columns: the same for the columns.
    order: the order of the axes in memory, for `Tensor.permute`.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    order: tuple[int, ...]

    def pack(self, matrix: Tensor) -> Tensor:
        """Return a view of a matrix with its axes in the order in which they are packed.

        matrix: *Shape:* (rows, columns).
        """
        return self._split(matrix).permute(self.order)

    def unpack(self, packed: Tensor) -> Tensor:
        """Return a copy of a packed matrix in its usual order.

        packed: the memory of `pack`, *Shape:* (rows, columns).
        """
        sizes = self._split(packed).shape
        axes = packed.view([sizes[axis] for axis in self.order])
        return axes.permute([self.order.index(axis) for axis in range(len(sizes))]).reshape(packed.shape)

    def _split(self, matrix: Tensor) -> Tensor:
        axes: Tensor = matrix.unflatten(1, self.columns).unflatten(0, self.rows)
        return axes


class Kind(NamedTuple):
    """A kind of compiled layer call.

    name: the call is named `name`_layer in the library.
    has: tells whether the library and this machine can run it.
    operands: type of the operands of the matrix multiplications.
    sums: type in which the sums of the gates' inputs are stored.
    multiple: dim and projection_dim must be multiples of it.
    gates: how the weights of the input and of the state are packed.
    projection: how the projection is packed.
    """

    name: str
    has: Callable[[ctypes.CDLL | None], bool]
    operands: torch.dtype
    sums: torch.dtype
    multiple: int
    gates: Axes
    projection: Axes


# the fastest kind of each type comes first
KINDS = (
    Kind(
        "amx", kernels.has_amx, torch.bfloat16, torch.float16, AMX_SIZE_MULTIPLE,
        Axes((-1, 16, 2), (4, -1, UNITS), (4, 0, 3, 1, 5, 2)),
        Axes((-1, 16, 2), (-1, 4, UNITS), (3, 0, 4, 1, 5, 2)),
    ),
    Kind(
        "avx512_bf16", kernels.has_avx512_bf16, torch.bfloat16, torch.float16, AVX512_SIZE_MULTIPLE,
        Axes((-1, 2), (2, 2, -1, UNITS), (4, 2, 0, 3, 5, 1)),
        Axes((-1, 2), (-1, 2, UNITS), (2, 0, 3, 4, 1)),
    ),
    Kind(
        "avx512", kernels.has_avx512, torch.float32, torch.float32, AVX512_SIZE_MULTIPLE,
        Axes((-1,), (2, 2, -1, UNITS), (3, 1, 0, 2, 4)),
        Axes((-1,), (-1, 2, UNITS), (1, 0, 2, 3)),
    ),
)  # fmt: skip


def kind_of(options: BiLMOptions, dtype: torch.dtype, library: ctypes.CDLL | None) -> Kind | None:
    """Return the fastest kind of compiled call that this machine can run for a biLM, or None.

    options: the biLM's sizes.
    dtype: type of the matrix multiplications.
    library: the compiled loops; None: there are none.
    """
    sizes = (options.dim, options.projection_dim)
    fitting = (kind for kind in KINDS if kind.operands == dtype and not any(size % kind.multiple for size in sizes))
    return next((kind for kind in fitting if kind.has(library)), None)


class _Layer(NamedTuple):
    """The weights of one layer.

    inputs: the input's weights, packed, *Shape:* (projection_dim, 4 dim).
    recurrent: the previous state's weights, packed, *Shape:* (projection_dim, 4 dim).
    projection: the projection's weights, packed, *Shape:* (dim, projection_dim).
    bias: *Shape:* (4 dim,), float32, with 1 added for the forget gate.
    remainders: of the three weights, not packed, if they were rounded to bfloat16 and can be asked for; else None.
    addresses: of the four arrays, in this order. They are checked once for all calls.
    """

    inputs: Tensor
    recurrent: Tensor
    projection: Tensor
    bias: Tensor
    remainders: list[Tensor] | None
    addresses: tuple[int, ...]


class _Steps(NamedTuple):
    """The steps of a batch, in the order in which they are read.

    active: *Shape:* (steps,), number of rows of each step.
    offsets: *Shape:* (steps,), packed index of each step's first position.
    """

    active: npt.NDArray[np.int32]
    offsets: Index

    @classmethod
    def of(cls, packing: Packing, backward: bool) -> _Steps:
        """Return the steps of a packing. backward: whether the last step is read first."""
        if not backward:
            return cls(packing.active, packing.offsets)
        return cls(packing.active[::-1].copy(), packing.offsets[::-1].copy())


class _Work(NamedTuple):
    """Arrays that all layers of a stack use, one layer after another. Their layouts are described in layouts.h.

    n_rows: number of rows of the batch.
    cells: *Shape:* (dim / 16, padded rows, 16), the cell state.
    state: *Shape:* (padded rows, projection_dim), the state h.
    outs: *Shape:* (padded rows, dim), the cell's outputs before the projection.
    """

    n_rows: int
    cells: Tensor
    state: Tensor
    outs: Tensor


class CompiledStack:
    """The LSTM layers of one direction, which have a projection. The methods do what `stacks.Stack` describes.

    options: the biLM's sizes, clips and skip connections.
    kind: the kind of compiled call.
    library: the compiled loops.
    buffers: memory that all stacks of one engine share.
    """

    def __init__(self, options: BiLMOptions, kind: Kind, library: ctypes.CDLL, buffers: Buffers) -> None:
        self.options, self.kind, self.library, self.buffers = options, kind, library, buffers
        self.layers: list[_Layer] = []

    def add(self, weights: LayerWeights, lossless: bool) -> None:
        """Add the next layer.

        weights: the layer's weights of one direction.
        lossless: whether `matrices` must be able to return the weights.
        """
        matrices = [matrix.float() for matrix in weights.matrices]
        bias = with_forget_bias(weights.bias, torch.float32)
        remainders: list[Tensor] | None = None
        if self.kind.operands == torch.bfloat16:
            pairs = [split(matrix) for matrix in matrices]
            matrices = [high for high, _ in pairs]
            remainders = [low for _, low in pairs] if lossless else None
        axes = (self.kind.gates, self.kind.gates, self.kind.projection)
        packed = [in_large_pages(a.pack(matrix)).reshape(matrix.shape) for a, matrix in zip(axes, matrices)]
        self.layers.append(_Layer(packed[0], packed[1], packed[2], bias, remainders, self._addresses(packed, bias)))

    def _addresses(self, packed: list[Tensor], bias: Tensor) -> tuple[int, ...]:
        """Return the addresses of the packed input, recurrent and projection weights, and of the bias."""
        dim, width, operands = self.options.dim, self.options.projection_dim, self.kind.operands
        inputs, recurrent, projection = packed
        return (
            address("packed inputs", inputs, operands, (width, GATES * dim)),
            address("packed recurrent", recurrent, operands, (width, GATES * dim)),
            address("packed projection", projection, operands, (dim, width)),
            address("bias", bias, torch.float32, (GATES * dim,)),
        )

    def matrices(self, number: int) -> list[Tensor]:
        """Return float32 copies of a layer's matrices, bit for bit if the layer was added with `lossless`.

        number: number of the layer, from 0.
        """
        layer = self.layers[number]
        gates, projection = self.kind.gates, self.kind.projection
        matrices = [gates.unpack(layer.inputs), gates.unpack(layer.recurrent), projection.unpack(layer.projection)]
        return matrices if layer.remainders is None else [joined(*pair) for pair in zip(matrices, layer.remainders)]

    def run(
        self,
        words: Tensor,
        plans: Plans,
        packing: Packing,
        state: LstmState,
        ends: LstmState | None,
        backward: bool,
    ) -> list[Tensor]:
        """Run all layers, and return the outputs of each, *Shape:* (positions, projection_dim), in the packed order.

        words: *Shape:* (words, projection_dim), the input of the first layer.
        plans: when the input sums of which rows are computed.
        packing: the order of the positions.
        state: the state to start from.
        ends: receives the state at the end of each row, if it is not None.
        backward: whether each row is read from its last position to its first.
        """
        steps, work = _Steps.of(packing, backward), self._work(state.c.shape[1])
        call = self._call(steps, work)
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            plan = plans.first if k == 0 else plans.later
            x = outputs[-1] if k else words
            out = self.buffers.empty(f"out {k}", len(packing.source), self.options.projection_dim)
            self._run_layer(call, layer, x, LstmState(_rows(state.h[k]), _rows(state.c[k])), plan, backward, out)
            if ends is not None:
                last = torch.from_numpy(packing.firsts if backward else packing.ends)
                torch.index_select(out, 0, last, out=ends.h[k])
                ends.c[k] = work.cells[:, : len(last)].transpose(0, 1).flatten(1)
            if has_skip(self.options, k):
                out.add_(x)
            outputs.append(out)
        return outputs

    def _work(self, n_rows: int) -> _Work:
        """Return the arrays that all layers use, for a batch of `n_rows` rows."""
        empty, dim, width, rows = self.buffers.empty, self.options.dim, self.options.projection_dim, padded(n_rows)
        operands = self.kind.operands
        return _Work(
            n_rows,
            empty("cells", dim // UNITS, rows, UNITS),
            empty("state", rows, width, dtype=operands),
            empty("outs", rows, dim, dtype=operands),
        )

    def _call(self, steps: _Steps, work: _Work) -> LayerCall:
        """Return a call with the arguments that are the same in all layers. It does not own the arrays' memory."""
        dim, width, rows = self.options.dim, self.options.projection_dim, padded(work.n_rows)
        clips = Clips.of(self.options)
        return LayerCall(
            batch=work.n_rows,
            dim=dim,
            width=width,
            active=address("active", steps.active, np.int32, (None,)),
            offsets=address("offsets", steps.offsets, np.int64, (len(steps.active),)),
            cells=address("cells", work.cells, torch.float32, (dim // UNITS, rows, UNITS)),
            state=address("state", work.state, self.kind.operands, (rows, width)),
            outs=address("outs", work.outs, self.kind.operands, (rows, dim)),
            cell_bound=bound(clips.cell),
            proj_bound=bound(clips.proj),
        )

    def _run_layer(
        self, call: LayerCall, layer: _Layer, x: Tensor, start: LstmState, plan: Plan, backward: bool, out: Tensor
    ) -> None:
        """Run one layer. The cell states at the end of each row are then in the work array `cells`.

        call: as `_call` returns it. The arguments that are the layer's own are set here.
        x: *Shape:* (rows, projection_dim), the layer's input.
        start: the state before the first step, h *Shape:* (rows, projection_dim) and c *Shape:* (rows, dim).
        plan: when the input sums of which rows are computed.
        backward: whether each row is read from its last position to its first.
        out: *Shape:* (positions, projection_dim), receives the outputs, in the packed order.
        """
        empty, dim, width, n = self.buffers.empty, self.options.dim, self.options.projection_dim, call.batch
        chunks = plan.table(backward)
        blocked_rows = padded(max(plan.n_precomputed, plan.n_largest_chunk))
        blocked = empty("blocked", blocked_rows, width, dtype=self.kind.operands)
        inputs = empty("inputs", plan.n_sums, GATES * dim, dtype=self.kind.sums)
        call.n_precomputed, call.n_inputs, call.n_chunks = plan.n_precomputed, plan.n_sums, len(chunks)
        call.h_stride, call.c_stride = start.h.stride(0), start.c.stride(0)
        call.chunks = address("chunks", chunks, np.int64, (None, 4))
        call.precomputed = address("precomputed", plan.precomputed, torch.int64, (plan.n_precomputed,))
        call.by_chunk = None if plan.by_chunk is None else address("by_chunk", plan.by_chunk, torch.int64, (None,))
        call.places = address("places", plan.places, torch.int32, out.shape[:1])
        call.x = address("x", x, torch.float32, (None, width))
        call.h = address_of_rows("h", start.h, torch.float32, (n, width))
        call.c = address_of_rows("c", start.c, torch.float32, (n, dim))
        call.packed_inputs, call.packed_recurrent, call.packed_w_p, call.bias = layer.addresses
        call.blocked = address("blocked", blocked, self.kind.operands, (None, width))
        call.inputs = address("inputs", inputs, self.kind.sums, (plan.n_sums, GATES * dim), INPUTS_ALIGNMENT)
        call.out = address("out", out, torch.float32, (None, width))
        getattr(self.library, f"{self.kind.name}_layer")(ctypes.byref(call))


def _rows(part: Tensor) -> Tensor:
    """Return a tensor whose rows are contiguous each. All rows may be at the same address, as after `expand`."""
    return part if part.stride(1) == 1 else part.contiguous()


STEP_ROWS = 128  # usual number of rows of a step, for which the weights are prepacked


class _TorchLayer(NamedTuple):
    """The matrix multiplications of one layer. `Gates` in modules/lstm/cell.py has the order of the gates.

    inputs: from the layer's input to its input sums, *Shape:* (4 dim,) for each row, bias included.
    recurrent: from the previous state to its part of the gates' sums.
    projection: of the cell's output; None: there is none.
    remainders: of the three weights, if they were rounded to bfloat16 and can be asked for (see `split`); else None.
    """

    inputs: PrepackedLinear
    recurrent: PrepackedLinear
    projection: PrepackedLinear | None
    remainders: list[Tensor] | None


class TorchStack:
    """The LSTM layers of one direction, run by torch. The methods do what `stacks.Stack` describes.

    options: the biLM's sizes, clips and skip connections.
    dtype: type of the matrix multiplications.
    buffers: memory that all stacks of one engine share.
    input_rows: number of rows, at most, whose input sums are computed at a time.
    """

    def __init__(self, options: BiLMOptions, dtype: torch.dtype, buffers: Buffers, input_rows: int) -> None:
        self.options, self.dtype, self.buffers, self.input_rows = options, dtype, buffers, input_rows
        self.layers: list[_TorchLayer] = []

    def add(self, weights: LayerWeights, lossless: bool) -> None:
        """Add the next layer.

        weights: the layer's weights of one direction.
        lossless: whether `matrices` must be able to return the weights.
        """
        low, bias = self.dtype != torch.float32, with_forget_bias(weights.bias, torch.float32)
        pairs = [split(matrix.float().t()) if low else (matrix.float().t(), None) for matrix in weights.matrices]
        rows = [(self.input_rows, bias), (STEP_ROWS, None), (STEP_ROWS, None)]
        linears = [PrepackedLinear(matrix, b, n, self.dtype) for (matrix, _), (n, b) in zip(pairs, rows)]
        remainders = [low_part for _, low_part in pairs if low_part is not None] if lossless and low else None
        projection = linears[2] if len(linears) > 2 else None
        self.layers.append(_TorchLayer(linears[0], linears[1], projection, remainders))

    def matrices(self, number: int) -> list[Tensor]:
        """Return float32 copies of a layer's matrices, bit for bit if the layer was added with `lossless`.

        number: number of the layer, from 0.
        """
        *linears, remainders = self.layers[number]
        plain = [linear.plain for linear in linears if linear is not None]
        if remainders is not None:
            plain = [joined(high, remainder) for high, remainder in zip(plain, remainders)]
        return [matrix.float().t() for matrix in plain]

    def run(
        self,
        words: Tensor,
        plans: Plans,
        packing: Packing,
        state: LstmState,
        ends: LstmState | None,
        backward: bool,
    ) -> list[Tensor]:
        """Run all layers, and return the outputs of each, *Shape:* (positions, projection_dim), in the packed order.

        words: *Shape:* (words, projection_dim), the input of the first layer.
        plans: when the input sums of which rows are computed.
        packing: the order of the positions.
        state: the state to start from.
        ends: receives the state at the end of each row, if it is not None.
        backward: whether each row is read from its last position to its first.
        """
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            plan = plans.first if k == 0 else plans.later
            x = outputs[-1] if k else words
            out = self.buffers.empty(f"out {k}", len(packing.source), self.options.projection_dim, device=words.device)
            h, c = (part[k].clone(memory_format=torch.contiguous_format) for part in state)
            precomputed = self._precomputed(layer, x, plan)
            for chunk in plan.chunks[::-1] if backward else plan.chunks:
                inputs = self._inputs(layer, plan.rows_of(x, chunk), precomputed, plan.n_precomputed)
                self._scan(layer, inputs, chunk, plan.places, packing, h, c, out, backward)
            if ends is not None:
                ends.h[k], ends.c[k] = h, c
            if has_skip(self.options, k):
                out.add_(x)
            outputs.append(out)
        return outputs

    def _precomputed(self, layer: _TorchLayer, x: Tensor, plan: Plan) -> Tensor | None:
        """Return an array that begins with the input sums of the plan's `precomputed` rows; None: there are none.

        The array has room for the input sums of a chunk after them: *Shape:* (plan.n_sums, 4 dim).

        x: *Shape:* (rows, input), the layer's input.
        """
        if not plan.n_precomputed:
            return None
        inputs = self.buffers.empty("inputs", plan.n_sums, 4 * self.options.dim, device=x.device)
        parts = inputs[: plan.n_precomputed].split(self.input_rows), x[plan.precomputed].split(self.input_rows)
        for sums, rows in zip(*parts):
            sums.copy_(layer.inputs(rows))
        return inputs

    def _inputs(self, layer: _TorchLayer, rows: Tensor, precomputed: Tensor | None, n_precomputed: int) -> Tensor:
        """Return the input sums that a chunk reads, at the indices that `Plan.places` has.

        rows: *Shape:* (n, input), the rows whose input sums are computed now.
        precomputed: as `_precomputed` returns it. The new input sums are written after its first `n_precomputed` rows.
        n_precomputed: number of input sums that are in `precomputed` already.
        """
        if precomputed is None:
            return layer.inputs(rows)
        if len(rows):
            precomputed[n_precomputed : n_precomputed + len(rows)] = layer.inputs(rows)
        return precomputed

    def _scan(
        self,
        layer: _TorchLayer,
        inputs: Tensor,
        chunk: Chunk,
        places: Tensor,
        packing: Packing,
        h: Tensor,
        c: Tensor,
        out: Tensor,
        backward: bool,
    ) -> None:
        """Run the steps of a chunk.

        inputs: *Shape:* (rows of inputs, 4 dim), input sums.
        places: *Shape:* (positions,), the index of each position's input sum in `inputs`.
        h: *Shape:* (rows, projection_dim), the state before the chunk; it is overwritten with the state after it.
        c: *Shape:* (rows, dim), the same for the cell state.
        out: *Shape:* (positions, projection_dim), receives the outputs of these steps.
        """
        library = loops(inputs)
        clip = Clips.of(self.options).proj
        order = range(chunk.steps.start, chunk.steps.stop)
        for t in reversed(order) if backward else order:
            n, place = int(packing.active[t]), int(packing.offsets[t])
            sums, rows = layer.recurrent(h[:n]), places[place : place + n]
            hidden = self._cell(library, sums, inputs, rows, c[:n])
            if layer.projection is not None:
                hidden = clip_in_place(layer.projection(hidden), clip)
            h[:n] = hidden
            out[place : place + n] = hidden

    def _cell(self, library: ctypes.CDLL | None, sums: Tensor, inputs: Tensor, rows: Tensor, c: Tensor) -> Tensor:
        """Return the output of one step of the cell, *Shape:* (n, dim), before the projection.

        library: the compiled loops; None: torch computes the step.
        sums: *Shape:* (n, 4 dim), the previous state's part of the gates' sums. It may be overwritten.
        inputs: *Shape:* (rows of inputs, 4 dim), input sums.
        rows: *Shape:* (n,), int32, the index of each row's input sum in `inputs`.
        c: *Shape:* (n, dim), the cell state. It is overwritten with the new one.
        """
        n, dim = c.shape
        clip = Clips.of(self.options).cell
        if library is not None:
            out = torch.empty_like(c)
            library.cell_step(
                n,
                dim,
                address("sums", sums, torch.float32, (n, 4 * dim)),
                address("inputs", inputs, torch.float32, (None, 4 * dim)),
                address("rows", rows, torch.int32, (n,)),
                address("c", c, torch.float32, (n, dim)),
                address("out", out, torch.float32, (n, dim)),
                bound(clip),
            )
            return out
        return cell_in_torch(sums.add_(inputs[rows.long()]), c, c, clip)


class Stack(Protocol):
    """The LSTM layers of one direction."""

    def add(self, weights: LayerWeights, lossless: bool) -> None:
        """Add the next layer.

        weights: the layer's weights of one direction. They are copied and not changed.
        lossless: whether `matrices` must be able to return the weights. If the engine computes in bfloat16, the
            remainders of the rounding are then stored as well.
        """
        ...

    def matrices(self, number: int) -> list[Tensor]:
        """Return copies of the matrices of a layer that was added with `lossless`, bit for bit.

        number: number of the layer, from 0.

        Returns float32 matrices in the order of `LayerWeights.matrices`.
        """
        ...

    def run(
        self,
        words: Tensor,
        plans: Plans,
        packing: Packing,
        state: LstmState,
        ends: LstmState | None,
        backward: bool,
    ) -> list[Tensor]:
        """Run all layers over a batch, and return the outputs of each layer, with its skip connection.

        All tensors are float32, except those of `plans`.

        words: *Shape:* (words, projection_dim), the input of the first layer, a row for each distinct word.
        plans: when the input sums of which rows are computed.
        packing: the order of the positions.
        state: the state to start from, h *Shape:* (layers, rows, projection_dim) and c *Shape:* (layers, rows, dim),
            with any strides. The rows are in the order of `packing.order`.
        ends: receives the state at the end of each row, of the same shapes; None: it is not needed.
        backward: whether each row is read from its last position to its first.

        Returns for each layer *Shape:* (positions, projection_dim), in the packed order. The next call in the same
        thread overwrites them.
        """
        ...


def make_stack(
    options: BiLMOptions,
    projection: bool,
    dtype: torch.dtype,
    device: torch.device,
    buffers: Buffers,
    input_rows: int,
) -> Stack:
    """Return a stack that has no layers yet: compiled if this machine has compiled loops for it, else in torch.

    options: the biLM's sizes.
    projection: whether the layers have a projection.
    dtype: type of the matrix multiplications.
    device: where the layers run.
    buffers: memory that all stacks of one engine share. A thread runs one stack at a time.
    input_rows: number of rows, at most, whose input sums are computed at a time.
    """
    library = kernels.load() if device.type == "cpu" and projection else None
    kind = kind_of(options, dtype, library)
    if library is not None and kind is not None:
        return CompiledStack(options, kind, library, buffers)
    return TorchStack(options, dtype, buffers, input_rows)
