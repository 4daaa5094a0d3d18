"""What is measured of a biLM: each of its layers, and their mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
MEAN = "mean"


def row_titles(layers: int) -> list[str]:
    """Return a title for each layer, and then one for their mean. layers: number of layers."""
    return [*(f"layer {k}" for k in range(layers)), "mean of the layers"]


def row_keys(layers: int) -> list[int | str]:
    """Return what JSON calls each layer, and then their mean. layers: number of layers."""
    return [*range(layers), MEAN]


def with_mean(layers: Array) -> Array:
    """Return layers and their mean.

    layers: *Shape:* (layers, ..., width).

    Returns *Shape:* (layers + 1, ..., width).
    """
    return np.concatenate([layers, layers.mean(0, keepdims=True)])
