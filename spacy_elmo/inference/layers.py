"""What the engine returns: each sentence's layers, filled in by one direction at a time."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from .. import kernels
from ..formats.options import BiLMOptions
from .lstm.packing import Index

Layers = npt.NDArray[np.float32]


def new_layers(options: BiLMOptions, lengths: Index) -> list[Layers]:
    """An array for each sentence, *Shape:* (layers, tokens, width). Values mean nothing."""
    return [np.empty((options.layers, n, options.width), np.float32) for n in lengths.tolist()]


def fill(
    layers: Sequence[Layers], outputs: Sequence[tuple[Tensor, Index]], lengths: Index, boundary: int, d: int
) -> None:
    """One direction's half of all layers.

    layers: see new_layers, a sentence's two halves side by side; d: which half.
    outputs: of each layer rows, *Shape:* (any, projection_dim), and the place there of each position of all sentences,
        one after another; lengths: their positions, with `boundary` at both ends that the arrays have no place for.
    """
    library = kernels.load()
    tokens = lengths - 2 * boundary
    if library is not None:
        shapes = [(len(outputs), n, 2 * outputs[0][0].shape[1]) for n in tokens.tolist()]
        found = [kernels.address("layers", array, np.float32, shape) for array, shape in zip(layers, shapes)]
        addresses = np.array(found, np.uintp)
    for k, (output, places) in enumerate(outputs):
        rows = np.ascontiguousarray(output.cpu().numpy())
        width = rows.shape[1]
        if library is None:
            _fill_layer([array[k, :, d * width : (d + 1) * width] for array in layers], rows[places], lengths, boundary)
            continue
        targets = addresses + ((2 * k * tokens + d) * width * rows.itemsize).astype(np.uintp)
        library.fill_rows(
            len(layers),
            boundary,
            width,
            2 * width,
            kernels.address("lengths", lengths, np.int64, (len(layers),)),
            kernels.address("places", places, np.int64, (None,)),
            kernels.address("rows", rows, np.float32, (None, width)),
            kernels.address("targets", targets, np.uintp, (len(layers),)),
        )


def _fill_layer(targets: Sequence[Layers], rows: Layers, lengths: Index, boundary: int) -> None:
    """targets: each *Shape:* (tokens, width); rows: (positions, width), all sentences'; else see fill."""
    for target, end in zip(targets, np.cumsum(lengths).tolist()):
        stop = end - boundary
        target[:] = rows[stop - len(target) : stop]
