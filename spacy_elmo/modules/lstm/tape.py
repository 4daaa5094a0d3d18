"""What one direction of an LSTM layer keeps for its backward pass."""

from typing import NamedTuple

import torch
from torch import Tensor

Arrays = dict[str, Tensor]


class Tape(NamedTuple):
    """Rows are the batch, or more: see lstm_amx.py, which lays out the middle three in its own way.

    inputs: *Shape:* (steps, rows, input + projection_dim), x beside the state that it met; gates: (steps, rows, 4 dim),
    activated; outs: (steps, rows, dim), before the projection; cells, hidden: (steps + 1, rows, dim or projection_dim),
    row 0 is the state before the first step.
    """

    inputs: Tensor
    gates: Tensor
    outs: Tensor
    cells: Tensor
    hidden: Tensor


def array(arrays: Arrays | None, name: str, like: Tensor, dtype: torch.dtype, *shape: int) -> Tensor:
    """An empty array, on the device of `like`; that of the call before, where there are `arrays` that have it."""
    kept = None if arrays is None else arrays.get(name)
    if kept is None or kept.shape != shape or kept.dtype != dtype:
        kept = like.new_empty(shape, dtype=dtype)
        if arrays is not None:
            arrays[name] = kept
    return kept
