"""Runs the LSTM layers of one direction, each in one compiled call.

In bfloat16 the calls use the tiles of AMX or AVX-512, and the input sums are float16. In float32 they use AVX-512. Cell
states and outputs are float32. The arguments of a call are described in calls.h of the kernels, and the layouts of the
arrays in layouts.h.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...formats.options import BiLMOptions
from ...kernels.calls import LayerCall
from ...kernels.constants import GATES, INPUTS_ALIGNMENT, UNITS, padded
from ...modules.loops import address, address_of_rows, bound
from ...modules.lstm.cell import Clips, add_skip_in_place, with_forget_bias
from ...modules.lstm.state import LstmState
from ...modules.lstm.weights import LayerWeights
from ..memory import Buffers, in_large_pages
from ..split import joined, split
from .kinds import Kind
from .packing import Index, Packing
from .plan import Plan, Plans


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
            add_skip_in_place(self.options, k, out, x)
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
