"""One direction of all LSTM layers: two compiled calls for each layer and some steps.

In bfloat16 on the tiles of AMX or on AVX-512, where the sums of the inputs are float16, and in float32 on AVX-512;
cells and outputs are float32. Layouts: kernels/amx.h and amx_scan.c, kernels/avx512_scan.inc.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .. import kernels
from ..formats.options import BiLMOptions
from ..modules.lstm import LayerWeights, LstmState
from ..modules.lstm_amx import UNITS, padded
from ..modules.lstm_scan import FORGET_BIAS
from .buffers import Buffers
from .large_pages import in_large_pages
from .packing import Packing
from .plan import Chunk, Plans
from .split import joined, split

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
    """A pair of compiled calls. has: whether this machine runs them; block: columns of a block of a left operand;
    multiple: of which the sizes are.
    """

    name: str
    has: Callable[[ctypes.CDLL | None], bool]
    operands: torch.dtype
    sums: torch.dtype
    block: int
    multiple: int
    gates: _Axes
    projection: _Axes


# the fastest of a type first
KINDS = (
    Kind(
        "amx", kernels.has_amx, torch.bfloat16, torch.float16, 32, 64,
        _Axes((-1, 16, 2), (4, -1, UNITS), (4, 0, 3, 1, 5, 2)),
        _Axes((-1, 16, 2), (-1, 4, UNITS), (3, 0, 4, 1, 5, 2)),
    ),
    Kind(
        "avx512_bf16", kernels.has_avx512_bf16, torch.bfloat16, torch.float16, 32, 32,
        _Axes((-1, 2), (2, 2, -1, UNITS), (4, 2, 0, 3, 5, 1)),
        _Axes((-1, 2), (-1, 2, UNITS), (2, 0, 3, 4, 1)),
    ),
    Kind(
        "avx512", kernels.has_avx512, torch.float32, torch.float32, 16, 32,
        _Axes((-1,), (2, 2, -1, UNITS), (3, 1, 0, 2, 4)),
        _Axes((-1,), (-1, 2, UNITS), (1, 0, 2, 3)),
    ),
)  # fmt: skip


class _Layer(NamedTuple):
    """Packed weights of the input, of the state, and of the projection; the bias with the forget bias.

    rests: what bfloat16 left of the three weights, not packed, where it is kept.
    """

    inputs: Tensor
    recurrent: Tensor
    projection: Tensor
    bias: Tensor
    rests: list[Tensor] | None


class _Work(NamedTuple):
    """What a layer's steps share: cells (dim / 16, rows, 16), the state and the cells' outputs, blocked; all positions'
    outputs (positions, projection_dim).
    """

    cells: Tensor
    state: Tensor
    outs: Tensor
    out: Tensor


def kind_of(options: BiLMOptions, dtype: torch.dtype, library: ctypes.CDLL | None) -> Kind | None:
    """The compiled calls for such sizes and products that this machine can run."""
    sizes = (options.dim, options.projection_dim)
    fitting = (kind for kind in KINDS if kind.operands == dtype and not any(size % kind.multiple for size in sizes))
    return next((kind for kind in fitting if kind.has(library)), None)


class CompiledStack:
    """Layers with a projection. library: the compiled loops; buffers: see TorchStack."""

    def __init__(self, options: BiLMOptions, kind: Kind, library: ctypes.CDLL, buffers: Buffers) -> None:
        self.options, self.kind, self.library, self.buffers = options, kind, library, buffers
        self.layers: list[_Layer] = []

    def add(self, weights: LayerWeights, whole: bool) -> None:
        """Lay out the next layer; see stacks.Stack."""
        dim, matrices = self.options.dim, [matrix.float() for matrix in weights.matrices]
        bias = weights.bias.float().clone()
        bias[2 * dim : 3 * dim] += FORGET_BIAS
        rests: list[Tensor] | None = None
        if self.kind.operands == torch.bfloat16:
            pairs = [split(matrix) for matrix in matrices]
            matrices = [high for high, _ in pairs]
            rests = [low for _, low in pairs] if whole else None
        packed = [self._packed(matrix, place) for place, matrix in enumerate(matrices)]
        self.layers.append(_Layer(packed[0], packed[1], packed[2], bias, rests))

    def matrices(self, number: int) -> list[Tensor]:
        """See stacks.Stack."""
        layer = self.layers[number]
        packed = (layer.inputs, layer.recurrent, layer.projection)
        matrices = [self._unpacked(matrix, place) for place, matrix in enumerate(packed)]
        return matrices if layer.rests is None else [joined(*pair) for pair in zip(matrices, layer.rests)]

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
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            plan = plans.first if k == 0 else plans.further
            x = outputs[-1] if k else words
            out = self.buffers.take(f"out {k}", len(packing.source), self.options.projection_dim)
            work = self._work(state.h[k], state.c[k], out)
            inputs = self.buffers.take("inputs", plan.rows, 4 * self.options.dim, dtype=self.kind.sums)
            self._inputs(layer, x[plan.kept], inputs, 0)
            for chunk in plan.chunks[::-1] if backward else plan.chunks:
                self._inputs(layer, x[chunk.fresh], inputs, plan.n_kept)
                self._scan(layer, inputs, chunk, packing, work, backward)
            if ends is not None:
                last = torch.from_numpy(packing.firsts if backward else packing.ends)
                torch.index_select(out, 0, last, out=ends.h[k])
                ends.c[k] = work.cells[:, : len(last)].transpose(0, 1).flatten(1)
            if k and self.options.use_skip_connections:
                out.add_(x)
            outputs.append(out)
        return outputs

    def _work(self, h: Tensor, c: Tensor, out: Tensor) -> _Work:
        n, dim = c.shape
        rows = padded(n)
        cells = self.buffers.take("cells", dim // UNITS, rows, UNITS)
        cells[:, :n] = c.unflatten(1, (-1, UNITS)).transpose(0, 1)
        outs = self.buffers.take("outs", rows, dim, dtype=self.kind.operands)
        return _Work(cells, self._blocked("state", h), outs, out)

    def _blocked(self, name: str, x: Tensor) -> Tensor:
        """x (rows, k) as a left operand, (k / block, padded rows, block); rows behind the last mean nothing."""
        (rows, k), block = x.shape, self.kind.block
        result = self.buffers.take(name, k // block, padded(rows), block, dtype=self.kind.operands)
        result[:, :rows] = x.unflatten(1, (-1, block)).transpose(0, 1)
        return result

    def _inputs(self, layer: _Layer, x: Tensor, inputs: Tensor, begin: int) -> None:
        """The sums of the rows of x, into rows of inputs from `begin` on."""
        if len(x):
            assert inputs.data_ptr() % 64 == 0  # the loops' stores would end the process
            blocked = self._blocked("x", x)
            arrays = (blocked, layer.inputs, layer.bias, inputs)
            sizes = (len(x), blocked.shape[1], x.shape[1], self.options.dim, len(inputs), begin)
            self._call("inputs", *sizes, *(array.data_ptr() for array in arrays))

    def _scan(self, layer: _Layer, inputs: Tensor, chunk: Chunk, packing: Packing, work: _Work, backward: bool) -> None:
        """The steps of a chunk. inputs: the kept sums and behind them the fresh ones."""
        options, turn = self.options, slice(None, None, -1 if backward else 1)
        active, offsets = (array[chunk.steps][turn].copy() for array in (packing.active, packing.offsets))
        begin = int(packing.offsets[chunk.steps.start])
        offsets -= begin
        clips = [-1.0 if clip is None else clip for clip in (options.cell_clip, options.proj_clip)]
        arrays = (chunk.places, inputs, layer.recurrent, layer.projection, *work[:3], work.out[begin:])
        self._call(
            "scan",
            *(len(active), work.cells.shape[1], options.dim, options.projection_dim, len(inputs)),
            *(active.ctypes.data, offsets.ctypes.data),
            *(array.data_ptr() for array in arrays),
            *clips,
        )

    def _call(self, name: str, *arguments: float) -> None:
        getattr(self.library, f"{self.kind.name}_{name}")(*arguments)
