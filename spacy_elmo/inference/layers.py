"""The arrays that the engine returns, each sentence's layers. Each direction writes its half of them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

from .. import kernels
from ..formats.options import BiLMOptions
from .lstm.packing import Index

Layers = npt.NDArray[np.float32]


def new_layers(options: BiLMOptions, lengths: Index) -> list[Layers]:
    """Return an array for each sentence, *Shape:* (layers, tokens, width), whose values are not set.

    options: the biLM's options.
    lengths: *Shape:* (sentences,), number of tokens of each.
    """
    return [np.empty((options.layers, n, options.width), np.float32) for n in lengths.tolist()]


def fill(
    layers: Sequence[Layers], outputs: Sequence[tuple[Tensor, Index]], lengths: Index, boundary: int, d: int
) -> None:
    """Write one direction's half of all layers into the arrays of sentences.

    layers: what `new_layers` returned. The forward half is [..., :projection_dim], the backward half the other one.
    outputs: for each layer a tensor of *Shape:* (any, projection_dim), and the row in it of each position of all
        sentences, one sentence after the other.
    lengths: *Shape:* (sentences,), number of positions of each.
    boundary: number of positions at each end of a sentence that are not in `layers`.
    d: 0 for the forward half, 1 for the backward half.

    Raises KernelError if an array is not as the compiled loop expects it.
    """
    library = kernels.load()
    tokens = lengths - 2 * boundary
    if library is not None:
        shapes = [(len(outputs), n, 2 * outputs[0][0].shape[1]) for n in tokens.tolist()]
        starts = [kernels.address("layers", array, np.float32, shape) for array, shape in zip(layers, shapes)]
        addresses = np.array(starts, np.uintp)
        of_lengths = kernels.address("lengths", lengths, np.int64, (len(layers),))
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
            of_lengths,
            kernels.address("places", places, np.int64, (None,)),
            kernels.address("rows", rows, np.float32, (None, width)),
            kernels.address("targets", targets, np.uintp, (len(layers),)),
        )


def _fill_layer(targets: Sequence[Layers], rows: Layers, lengths: Index, boundary: int) -> None:
    """Write rows, *Shape:* (positions, width), into the sentences' targets, *Shape:* (tokens, width) each."""
    for target, end in zip(targets, np.cumsum(lengths).tolist()):
        stop = end - boundary
        target[:] = rows[stop - len(target) : stop]
