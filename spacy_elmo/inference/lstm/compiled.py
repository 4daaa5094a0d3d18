"""One direction of all LSTM layers: a compiled call for each.

In bfloat16 on the tiles of AMX or on AVX-512, where the sums of the inputs are float16, and in float32 on AVX-512;
cells and outputs are float32. The call: calls.h of the kernels; the arrays' layouts: layouts.h.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import kernels
from ...formats.options import BiLMOptions
from ...kernels.calls import LayerCall
from ...kernels.constants import AMX_SIZE_MULTIPLE, AVX512_SIZE_MULTIPLE, GATES, INPUTS_ALIGNMENT, UNITS, padded
from ...modules.loops import address, address_of_rows, bound
from ...modules.lstm.cell import with_forget_bias
from ...modules.lstm.layers import LayerWeights, LstmState
from ..memory import Buffers, in_large_pages
from ..split import joined, split
from .packing import Index, Packing
from .plan import Plan, Plans

PROJECTION = 2  # its place among a layer's matrices


class _Axes(NamedTuple):
    """How a matrix is packed: its rows and columns are split, and the axes put in order."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    order: tuple[int, ...]

    def split(self, matrix: Tensor) -> Tensor:
        """The matrix with these axes, not yet in order."""
        axes: Tensor = matrix.unflatten(1, self.columns).unflatten(0, self.rows)
        return axes


class Kind(NamedTuple):
    """A compiled call. has: whether this machine runs it; multiple: of which the sizes are."""

    name: str
    has: Callable[[ctypes.CDLL | None], bool]
    operands: torch.dtype
    sums: torch.dtype
    multiple: int
    gates: _Axes
    projection: _Axes


# the fastest of a type first
KINDS = (
    Kind(
        "amx", kernels.has_amx, torch.bfloat16, torch.float16, AMX_SIZE_MULTIPLE,
        _Axes((-1, 16, 2), (4, -1, UNITS), (4, 0, 3, 1, 5, 2)),
        _Axes((-1, 16, 2), (-1, 4, UNITS), (3, 0, 4, 1, 5, 2)),
    ),
    Kind(
        "avx512_bf16", kernels.has_avx512_bf16, torch.bfloat16, torch.float16, AVX512_SIZE_MULTIPLE,
        _Axes((-1, 2), (2, 2, -1, UNITS), (4, 2, 0, 3, 5, 1)),
        _Axes((-1, 2), (-1, 2, UNITS), (2, 0, 3, 4, 1)),
    ),
    Kind(
        "avx512", kernels.has_avx512, torch.float32, torch.float32, AVX512_SIZE_MULTIPLE,
        _Axes((-1,), (2, 2, -1, UNITS), (3, 1, 0, 2, 4)),
        _Axes((-1,), (-1, 2, UNITS), (1, 0, 2, 3)),
    ),
)  # fmt: skip


class _Layer(NamedTuple):
    """Packed weights of the input, of the state, and of the projection; the bias with the forget bias.

    remainders: what bfloat16 took away from the three weights, not packed; None if it is not stored.
    """

    inputs: Tensor
    recurrent: Tensor
    projection: Tensor
    bias: Tensor
    remainders: list[Tensor] | None


class _Steps(NamedTuple):
    """How many rows each step has, and where its positions begin, in the order read. *Shape:* (steps,)."""

    active: npt.NDArray[np.int32]
    offsets: Index

    @classmethod
    def of(cls, packing: Packing, backward: bool) -> _Steps:
        if not backward:
            return cls(packing.active, packing.offsets)
        return cls(packing.active[::-1].copy(), packing.offsets[::-1].copy())


def kind_of(options: BiLMOptions, dtype: torch.dtype, library: ctypes.CDLL | None) -> Kind | None:
    """The compiled call for such sizes and products that this machine can run."""
    sizes = (options.dim, options.projection_dim)
    fitting = (kind for kind in KINDS if kind.operands == dtype and not any(size % kind.multiple for size in sizes))
    return next((kind for kind in fitting if kind.has(library)), None)


class CompiledStack:
    """Layers with a projection. library: the compiled loops; buffers: see TorchStack."""

    def __init__(self, options: BiLMOptions, kind: Kind, library: ctypes.CDLL, buffers: Buffers) -> None:
        self.options, self.kind, self.library, self.buffers = options, kind, library, buffers
        self.layers: list[_Layer] = []

    def add(self, weights: LayerWeights, lossless: bool) -> None:
        """Lay out the next layer; see stacks.Stack."""
        matrices = [matrix.float() for matrix in weights.matrices]
        bias = with_forget_bias(weights.bias, torch.float32)
        remainders: list[Tensor] | None = None
        if self.kind.operands == torch.bfloat16:
            pairs = [split(matrix) for matrix in matrices]
            matrices = [high for high, _ in pairs]
            remainders = [low for _, low in pairs] if lossless else None
        packed = [self._packed(matrix, place) for place, matrix in enumerate(matrices)]
        self.layers.append(_Layer(packed[0], packed[1], packed[2], bias, remainders))

    def matrices(self, number: int) -> list[Tensor]:
        """See stacks.Stack."""
        layer = self.layers[number]
        packed = (layer.inputs, layer.recurrent, layer.projection)
        matrices = [self._unpacked(matrix, place) for place, matrix in enumerate(packed)]
        return matrices if layer.remainders is None else [joined(*pair) for pair in zip(matrices, layer.remainders)]

    def _packed(self, matrix: Tensor, place: int) -> Tensor:
        """place: the matrix's among a layer's."""
        axes = self._axes(place)
        return in_large_pages(axes.split(matrix).permute(axes.order)).reshape(matrix.shape)

    def _unpacked(self, packed: Tensor, place: int) -> Tensor:
        axes = self._axes(place)
        sizes = axes.split(packed).shape
        placed = packed.view([sizes[axis] for axis in axes.order])
        back = [axes.order.index(axis) for axis in range(len(sizes))]
        return placed.permute(back).reshape(packed.shape)

    def _axes(self, place: int) -> _Axes:
        return self.kind.projection if place == PROJECTION else self.kind.gates

    def run(
        self,
        words: Tensor,
        plans: Plans,
        packing: Packing,
        state: LstmState,
        ends: LstmState | None,
        backward: bool,
    ) -> list[Tensor]:
        """Each layer's outputs, *Shape:* (positions, projection_dim); see stacks.Stack."""
        steps = _Steps.of(packing, backward)
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            plan = plans.first if k == 0 else plans.further
            x = outputs[-1] if k else words
            out = self.buffers.empty(f"out {k}", len(packing.source), self.options.projection_dim)
            begin = LstmState(_rows(state.h[k]), _rows(state.c[k]))
            cells = self._run_layer(layer, x, begin, plan, plan.table(backward), steps, out)
            if ends is not None:
                last = torch.from_numpy(packing.firsts if backward else packing.ends)
                torch.index_select(out, 0, last, out=ends.h[k])
                ends.c[k] = cells[:, : len(last)].transpose(0, 1).flatten(1)
            if k and self.options.use_skip_connections:
                out.add_(x)
            outputs.append(out)
        return outputs

    def _run_layer(
        self, layer: _Layer, x: Tensor, begin: LstmState, plan: Plan, chunks: Index, steps: _Steps, out: Tensor
    ) -> Tensor:
        """Fill in a layer's outputs, `out`. Returns the cells at the end, *Shape:* (dim / 16, rows, 16)."""
        take, dim, width, n = self.buffers.empty, self.options.dim, self.options.projection_dim, len(begin.c)
        operands, rows, gates, real = self.kind.operands, padded(n), GATES * dim, torch.float32
        blocked = take("blocked", padded(max(plan.n_kept, plan.n_fresh)), width, dtype=operands)
        inputs = take("inputs", plan.rows, gates, dtype=self.kind.sums)
        cells = take("cells", dim // UNITS, rows, UNITS)
        state, outs = take("state", rows, width, dtype=operands), take("outs", rows, dim, dtype=operands)
        n_steps, n_positions = len(steps.active), len(out)
        fresh = None if plan.fresh is None else address("fresh", plan.fresh, torch.int64, (None,))
        call = LayerCall(
            batch=n,
            dim=dim,
            width=width,
            n_kept=plan.n_kept,
            n_inputs=len(inputs),
            n_chunks=len(chunks),
            h_stride=begin.h.stride(0),
            c_stride=begin.c.stride(0),
            chunks=address("chunks", chunks, np.int64, (None, 4)),
            kept=address("kept", plan.kept, torch.int64, (plan.n_kept,)),
            fresh=fresh,
            active=address("active", steps.active, np.int32, (n_steps,)),
            offsets=address("offsets", steps.offsets, np.int64, (n_steps,)),
            places=address("places", plan.places, torch.int32, (n_positions,)),
            x=address("x", x, real, (None, width)),
            h=address_of_rows("h", begin.h, real, (n, width)),
            c=address_of_rows("c", begin.c, real, (n, dim)),
            packed_inputs=address("packed inputs", layer.inputs, operands, (width, gates)),
            packed_recurrent=address("packed recurrent", layer.recurrent, operands, (width, gates)),
            packed_w_p=address("packed projection", layer.projection, operands, (dim, width)),
            bias=address("bias", layer.bias, real, (gates,)),
            blocked=address("blocked", blocked, operands, (None, width)),
            inputs=address("inputs", inputs, self.kind.sums, (plan.rows, gates), INPUTS_ALIGNMENT),
            cells=address("cells", cells, real, (dim // UNITS, rows, UNITS)),
            state=address("state", state, operands, (rows, width)),
            outs=address("outs", outs, operands, (rows, dim)),
            out=address("out", out, real, (n_positions, width)),
            cell_bound=bound(self.options.cell_clip),
            proj_bound=bound(self.options.proj_clip),
        )
        getattr(self.library, f"{self.kind.name}_layer")(ctypes.byref(call))
        return cells


def _rows(part: Tensor) -> Tensor:
    """Each row one stretch of memory; rows may be the same one."""
    return part if part.stride(1) == 1 else part.contiguous()
