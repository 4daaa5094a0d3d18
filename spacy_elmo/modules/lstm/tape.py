"""The values that one direction of an LSTM layer stores for its backward pass."""

from typing import NamedTuple

import torch
from torch import Tensor

Arrays = dict[str, Tensor]


class Tape(NamedTuple):
    """The values of a window of steps.

    In torch the rows are those of the batch, and the arrays are row-major. In the compiled calls of `amx` the rows are
    padded, and gates, outs and cells have the layouts that layouts.h of the kernels describes.

    inputs: *Shape:* (steps, rows, input + projection_dim), at each step x followed by the previous state.
    gates: *Shape:* (steps, rows, 4 dim), the activations of the gates.
    outs: *Shape:* (steps, rows, dim), the outputs of the cell before the projection.
    cells: *Shape:* (steps + 1, rows, dim), the cell states; index 0 is the one before the first step.
    hidden: *Shape:* (steps + 1, rows, projection_dim), the states h; index 0 is the one before the first step.
    """

    inputs: Tensor
    gates: Tensor
    outs: Tensor
    cells: Tensor
    hidden: Tensor


def array(arrays: Arrays | None, name: str, like: Tensor, dtype: torch.dtype, *shape: int) -> Tensor:
    """Return an array whose values are not set, and store it for the next call.

    arrays: the stored arrays by name; None: nothing is stored. A stored array of the same shape and type is used again.
    name: name of the array.
    like: a tensor on the same device.
    dtype: type of the array.
    shape: shape of the array.
    """
    stored = None if arrays is None else arrays.get(name)
    if stored is None or stored.shape != shape or stored.dtype != dtype:
        stored = like.new_empty(shape, dtype=dtype)
        if arrays is not None:
            arrays[name] = stored
    return stored
