"""Runs the LSTM layers of one direction in torch, on any device and in any of the engine's types."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from ...formats.options import BiLMOptions
from ...modules.loops import address, bound, loops
from ...modules.lstm.cell import Clips, add_skip_in_place, cell_in_torch, clip_in_place, with_forget_bias
from ...modules.lstm.state import LstmState
from ...modules.lstm.weights import LayerWeights
from ..linear import PrepackedLinear
from ..memory import Buffers
from ..split import joined, split
from .packing import Packing
from .plan import Chunk, Plan, Plans

STEP_ROWS = 128  # usual number of rows of a step, for which the weights are prepacked


class _Layer(NamedTuple):
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
        self.layers: list[_Layer] = []

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
        self.layers.append(_Layer(linears[0], linears[1], projection, remainders))

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
            add_skip_in_place(self.options, k, out, x)
            outputs.append(out)
        return outputs

    def _precomputed(self, layer: _Layer, x: Tensor, plan: Plan) -> Tensor | None:
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

    def _inputs(self, layer: _Layer, rows: Tensor, precomputed: Tensor | None, n_precomputed: int) -> Tensor:
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
