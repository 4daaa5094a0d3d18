"""What runs the LSTM layers of one direction, and which of them this machine gets: chosen here and nowhere else."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ... import kernels
from ...formats.options import BiLMOptions
from ...modules.lstm.layers import LayerWeights, LstmState
from ..memory import Buffers
from .compiled import CompiledStack
from .kinds import kind_of
from .packing import Packing
from .plan import Plans
from .torch import TorchStack


class Stack(Protocol):
    """The LSTM layers of one direction."""

    def add(self, weights: LayerWeights, lossless: bool) -> None:
        """Lay out the next layer.

        weights: of one direction; they are left as they are.
        lossless: whether `matrices` can be asked for them: in bfloat16 what rounding takes away is stored too.
        """
        ...

    def matrices(self, number: int) -> list[Tensor]:
        """Copies of the matrices of a layer that was added without loss, float32, bit for bit.

        number: of the layer, from 0 on. Returns them in the order of LayerWeights.matrices.
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
        """Each layer's outputs (with its skip connection), *Shape:* (positions, projection_dim), float32, in the packed
        order; another call in the same thread overwrites them.

        words: *Shape:* (words, projection_dim), layer 0; plans: whose products are taken when.
        state: to start from, (layers, rows, projection_dim) and (layers, rows, dim), rows in the packing's order, with
            any strides; ends: None, or filled in with the states at the end. All float32.
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
    """One without layers.

    projection: whether they have one; dtype: of the products; buffers: of all stacks of one engine, which take turns
    in a thread; input_rows: how many rows' input products are taken at a time, at most.
    """
    library = kernels.load() if device.type == "cpu" and projection else None
    kind = kind_of(options, dtype, library)
    if library is not None and kind is not None:
        return CompiledStack(options, kind, library, buffers)
    return TorchStack(options, dtype, buffers, input_rows)
