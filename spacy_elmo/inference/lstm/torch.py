"""One direction of all LSTM layers in torch's products, on any device and in any of the engine's types."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from ...formats.options import BiLMOptions
from ...modules.loops import address, bound, loops
from ...modules.lstm.cell import Clips, add_skip_in_place, cell_in_torch, clip_in_place, with_forget_bias
from ...modules.lstm.layers import LayerWeights, LstmState
from ..linear import PrepackedLinear
from ..memory import Buffers
from ..split import joined, split
from .packing import Packing
from .plan import Chunk, Plan, Plans

STEP_ROWS = 128  # usual number of rows of a step


class _Layer(NamedTuple):
    """Products of the input, of the state, and the projection; gates in the files' order i, j, f, o.

    remainders: what bfloat16 took away from their weights; None if it is not stored.
    """

    inputs: PrepackedLinear
    recurrent: PrepackedLinear
    projection: PrepackedLinear | None
    remainders: list[Tensor] | None


class TorchStack:
    """dtype: of the products; buffers: of all stacks that take turns; input_rows: how many rows' input products are
    taken at a time.
    """

    def __init__(self, options: BiLMOptions, dtype: torch.dtype, buffers: Buffers, input_rows: int) -> None:
        self.options, self.dtype, self.buffers, self.input_rows = options, dtype, buffers, input_rows
        self.layers: list[_Layer] = []

    def add(self, weights: LayerWeights, lossless: bool) -> None:
        """Lay out the next layer; see stacks.Stack."""
        low, bias = self.dtype != torch.float32, with_forget_bias(weights.bias, torch.float32)
        pairs = [split(matrix.float().t()) if low else (matrix.float().t(), None) for matrix in weights.matrices]
        rows = [(self.input_rows, bias), (STEP_ROWS, None), (STEP_ROWS, None)]
        products = [PrepackedLinear(matrix, b, n, self.dtype) for (matrix, _), (n, b) in zip(pairs, rows)]
        remainders = [left for _, left in pairs if left is not None] if lossless and low else None
        projection = products[2] if len(products) > 2 else None
        self.layers.append(_Layer(products[0], products[1], projection, remainders))

    def matrices(self, number: int) -> list[Tensor]:
        """See stacks.Stack."""
        *products, remainders = self.layers[number]
        plain = [product.plain for product in products if product is not None]
        if remainders is not None:
            plain = [joined(high, rest) for high, rest in zip(plain, remainders)]
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
        """Each layer's outputs, *Shape:* (positions, projection_dim); see stacks.Stack."""
        outputs: list[Tensor] = []
        for k, layer in enumerate(self.layers):
            plan = plans.first if k == 0 else plans.further
            x = outputs[-1] if k else words
            out = self.buffers.empty(f"out {k}", len(packing.source), self.options.projection_dim, device=words.device)
            h, c = (part[k].clone(memory_format=torch.contiguous_format) for part in state)
            kept = self._kept(layer, x, plan)
            for chunk in plan.chunks[::-1] if backward else plan.chunks:
                inputs = self._inputs(layer, plan.fresh_rows(x, chunk), kept, plan.n_kept)
                self._scan(layer, inputs, chunk, plan.places, packing, h, c, out, backward)
            if ends is not None:
                ends.h[k], ends.c[k] = h, c
            add_skip_in_place(self.options, k, out, x)
            outputs.append(out)
        return outputs

    def _kept(self, layer: _Layer, x: Tensor, plan: Plan) -> Tensor | None:
        """Sums of the inputs that are kept, *Shape:* (n_kept and room for a chunk's, 4 dim)."""
        if not plan.n_kept:
            return None
        kept = self.buffers.empty("inputs", plan.rows, 4 * self.options.dim, device=x.device)
        parts = kept[: plan.n_kept].split(self.input_rows), x[plan.kept].split(self.input_rows)
        for sums, rows in zip(*parts):
            sums.copy_(layer.inputs(rows))
        return kept

    def _inputs(self, layer: _Layer, fresh: Tensor, kept: Tensor | None, n_kept: int) -> Tensor:
        """The kept sums and those of a chunk's fresh rows, one after the other."""
        if kept is None:
            return layer.inputs(fresh)
        if len(fresh):
            kept[n_kept : n_kept + len(fresh)] = layer.inputs(fresh)
        return kept

    def _scan(
        self,
        layer: _Layer,
        inputs: Tensor,
        chunk: Chunk,
        places: Tensor,
        packing: Packing,
        h: Tensor,
        c: Tensor,
        out: Tensor,
        backward: bool,
    ) -> None:
        """The steps of a chunk; h (rows, projection_dim) and c (rows, dim) are updated in place."""
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
        """One step; c is updated. sums: *Shape:* (n, 4 dim), of the state; rows: (n,), into inputs."""
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
