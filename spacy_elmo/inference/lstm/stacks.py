"""The interface that runs the LSTM layers of one direction, and the choice between its implementations.

No other module chooses.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ... import kernels
from ...formats.options import BiLMOptions
from ...modules.lstm.state import LstmState
from ...modules.lstm.weights import LayerWeights
from ..memory import Buffers
from .compiled import CompiledStack
from .kinds import kind_of
from .packing import Packing
from .plan import Plans
from .torch import TorchStack


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
