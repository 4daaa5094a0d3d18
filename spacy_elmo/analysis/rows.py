"""What is measured of a biLM: each of its layers, and their mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from ..formats.options import BiLMOptions
from ..modules import Arrays, BiLM

Array = npt.NDArray[np.float32]
MEAN = "mean"


def row_titles(layers: int) -> list[str]:
    """Return a title for each layer, and then one for their mean."""
    return [*(f"layer {k}" for k in range(layers)), "mean of the layers"]


def row_keys(layers: int) -> list[int | str]:
    """Return what JSON calls each layer, and then their mean."""
    return [*range(layers), MEAN]


def with_mean(layers: Array) -> Array:
    """Return layers, *Shape:* (layers, ..., width), and their mean: *Shape:* (layers + 1, ..., width)."""
    return np.concatenate([layers, layers.mean(0, keepdims=True)])


def random_weights(options: BiLMOptions, seed: int) -> Arrays:
    """Return random weights by parameter name. The same seed gives the same weights."""
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    return bilm.to_arrays()
