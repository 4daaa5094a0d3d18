"""The control: random weights for the sizes of a biLM, as training initialises them."""

from __future__ import annotations

import torch

from ..formats.options import BiLMOptions
from ..modules import Arrays, BiLM


def random_weights(options: BiLMOptions, seed: int) -> Arrays:
    """Return random weights by parameter name.

    options: sizes of the biLM.
    seed: the same seed gives the same weights.
    """
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    return bilm.to_arrays()
