"""What the engine returns: each sentence's layers, filled in by one direction at a time."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..formats.options import BiLMOptions
from .packing import Index

Layers = npt.NDArray[np.float32]


def new_layers(options: BiLMOptions, lengths: Index) -> list[Layers]:
    """An array for each sentence, *Shape:* (layers, tokens, width). Values mean nothing."""
    return [np.empty((options.layers, n, options.width), np.float32) for n in lengths.tolist()]


def fill(
    layers: Sequence[Layers], outputs: Iterable[tuple[Tensor, Index]], lengths: Index, boundary: int, d: int
) -> None:
    """One direction's half of all layers.

    outputs: of each layer rows, *Shape:* (any, projection_dim), and the place there of each position of all sentences,
        one after another; lengths: their positions, with `boundary` at both ends that the arrays have no place for.
    """
    ends = np.cumsum(lengths).tolist()
    for k, (output, places) in enumerate(outputs):
        rows = output.cpu().numpy()[places]
        width = rows.shape[1]
        for array, end in zip(layers, ends):
            stop = end - boundary
            array[k, :, d * width : (d + 1) * width] = rows[stop - array.shape[1] : stop]
