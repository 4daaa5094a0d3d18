"""The mix of the layers: gamma * sum_j softmax(w)_j h_j."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import Errors, SettingsError

LayerNorm = Literal["none", "batch", "token"]
EPSILON = 1e-12  # of the originals


class ScalarMix(nn.Module):
    """Mix layers with trained weights: parameters w (layers,), pre-softmax, and gamma (1,).

    layers: how many there are.
    layer_norm: "none"; "batch": each layer less the mean and over the deviation of all its unmasked values (the
        originals': a token's vector depends on its batch); "token": each vector by its own mean and deviation.
    initial_scalar_parameters: what w starts from; None: zeros, the mean of the layers.
    trainable: whether w and gamma have gradients.
    dropout: on the mix, in training.
    """

    def __init__(
        self,
        layers: int,
        layer_norm: LayerNorm = "none",
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if layer_norm not in get_args(LayerNorm):
            raise SettingsError(Errors.MIX_LAYER_NORM.format(got=layer_norm))
        if initial_scalar_parameters is None:
            initial_scalar_parameters = [0.0] * layers
        if len(initial_scalar_parameters) != layers:
            raise SettingsError(Errors.MIX_PARAMETERS.format(got=len(initial_scalar_parameters), expected=layers))
        if not all(map(math.isfinite, initial_scalar_parameters)):
            raise SettingsError(Errors.MIX_FINITE.format(name="scalar_mix", got=list(initial_scalar_parameters)))
        if not 0 <= dropout < 1:
            raise SettingsError(Errors.MIX_DROPOUT.format(got=dropout))
        self.layer_norm, self.dropout = layer_norm, dropout
        self.w = nn.Parameter(torch.tensor([float(x) for x in initial_scalar_parameters]), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the layers.

        layers: *Shape:* (layers, batch, tokens, width).
        mask: *Shape:* (batch, tokens), true at real positions; None: all are. The others give zeros, whatever they
            hold (AllenNLP leaves values without meaning there), and get no gradient.
        Returns *Shape:* (batch, tokens, width).
        """
        if len(layers) != len(self.w):
            raise SettingsError(Errors.MIX_GIVEN.format(got=len(layers), expected=len(self.w)))
        hidden = None if mask is None else ~mask.bool()[..., None]
        if hidden is not None:
            layers = layers.masked_fill(hidden, 0.0)
        if self.layer_norm == "token":
            mean = layers.mean(3, keepdim=True)
            layers = _normalised(layers, mean, (layers - mean).square().mean(3, keepdim=True))
        elif self.layer_norm == "batch":
            layers = _normalised(layers, *_batch_statistics(layers, hidden))
        mixed = self.gamma * torch.tensordot(torch.softmax(self.w, 0), layers, 1)
        if hidden is not None:
            mixed = mixed.masked_fill(hidden, 0.0)
        return F.dropout(mixed, self.dropout, self.training)


def _normalised(layers: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    return (layers - mean) / torch.sqrt(variance + EPSILON)


def _batch_statistics(layers: Tensor, hidden: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and variance of each layer, *Shape:* (layers, 1, 1, 1); layers are zero at hidden (batch, tokens, 1)."""
    _, batch, tokens, width = layers.shape
    count = max(1, width * (batch * tokens - (0 if hidden is None else int(hidden.sum()))))
    mean = layers.sum((1, 2, 3), keepdim=True) / count
    from_mean = layers - mean
    if hidden is not None:
        from_mean = from_mean.masked_fill(hidden, 0.0)
    return mean, from_mean.square().sum((1, 2, 3), keepdim=True) / count
