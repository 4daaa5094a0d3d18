"""Scalar mix of the layers: gamma * sum_j softmax(w)_j h_j (Peters et al. 2018, equation 1)."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import MIX_FINITE, SettingsError, shown

LayerNorm = Literal["none", "batch", "token"]
# Added to the variance. "batch": AllenNLP's since 1.0 (tiny_value_of_dtype); before, it was 1e-12, as in bilm-tf.
# AllenNLP has none for bfloat16, which can hold the same. "token": the component's.
BATCH_EPSILON = {torch.float16: 1e-4}
OTHER_BATCH_EPSILON = 1e-13
TOKEN_EPSILON = 1e-12


class ScalarMix(nn.Module):
    """Mixes layers with trained weights.

    The parameters are `w`, (layers,), before the softmax, and `gamma`, (1,), which starts at 1.

    layers: number of layers.
    layer_norm: how each layer is normalised before the mix. "none": not at all. "batch": with one mean and variance
        over all its unmasked values, as AllenNLP does; then a token's vector depends on its batch. "token": with the
        mean and variance of each token's vector.
    initial_scalar_parameters: initial values of w, one for each layer; None: zeros, which give the mean of the layers.
    trainable: whether w and gamma get gradients.
    dropout: share of the mixed values that is set to 0 in training.

    Raises SettingsError if a value is out of its range.
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
            raise SettingsError(f'layer_norm is {layer_norm!r}. Expected "none", "batch" or "token".')
        if initial_scalar_parameters is None:
            initial_scalar_parameters = [0.0] * layers
        initial = _numbers(initial_scalar_parameters)
        if len(initial) != layers:
            raise SettingsError(
                f"scalar_mix_parameters has {len(initial)} values. Expected {layers}: one for each layer of the mix."
            )
        if not 0 <= dropout < 1:
            raise SettingsError(f"dropout is {dropout}. Expected a number, at least 0 and less than 1.")
        self.layer_norm, self.dropout = layer_norm, dropout
        self.w = nn.Parameter(torch.tensor(initial), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    @property
    def scalar_parameters(self) -> tuple[Tensor, ...]:
        """The values of `w` as AllenNLP has them: a tensor for each layer, *Shape:* (1,), which is a view of `w`."""
        return tuple(self.w[layer : layer + 1] for layer in range(len(self.w)))

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the layers.

        layers: *Shape:* (layers, batch, tokens, width).
        mask: *Shape:* (batch, tokens), true or 1 at tokens, false or 0 at padding; None: there is no padding. The mix
            is zero at padding, and no gradient flows there. (AllenNLP gives meaningless values at padding.)

        Returns *Shape:* (batch, tokens, width), of the type of the layers or of w: the one with more precision.
        Raises SettingsError if the number of layers is not that of w.
        """
        if len(layers) != len(self.w):
            raise SettingsError(
                f"the mix got {len(layers)} layers. Expected {len(self.w)}: the number in its setting layers, or "
                "of its scalar_mix_parameters, must be the number of the biLM's layers."
            )
        padding = None if mask is None else ~mask.bool()[..., None]
        if padding is not None:
            layers = layers.masked_fill(padding, 0.0)
        if self.layer_norm == "token":
            mean = layers.mean(3, keepdim=True)
            layers = _normalised(layers, mean, (layers - mean).square().mean(3, keepdim=True), TOKEN_EPSILON)
        elif self.layer_norm == "batch":
            epsilon = BATCH_EPSILON.get(layers.dtype, OTHER_BATCH_EPSILON)
            layers = _normalised(layers, *_batch_statistics(layers, padding), epsilon)
        common = torch.promote_types(self.w.dtype, layers.dtype)
        # as in AllenNLP, autocast does not round the mix
        with torch.autocast(layers.device.type, enabled=False):
            mixed = self.gamma * torch.tensordot(torch.softmax(self.w.to(common), 0), layers.to(common), 1)
        if padding is not None:
            mixed = mixed.masked_fill(padding, 0.0)
        return F.dropout(mixed, self.dropout, self.training)


def _numbers(parameters: Sequence[float]) -> list[float]:
    try:
        if all(map(math.isfinite, parameters)):
            return [float(x) for x in parameters]
    except TypeError:  # not a sequence, or not of numbers
        pass
    raise SettingsError(MIX_FINITE.format(got=shown(parameters)))


def _normalised(layers: Tensor, mean: Tensor, variance: Tensor, epsilon: float) -> Tensor:
    return (layers - mean) / torch.sqrt(variance + epsilon)


def _batch_statistics(layers: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance of each layer over its unmasked values, *Shape:* (layers, 1, 1, 1) each."""
    _, batch, tokens, width = layers.shape
    count = max(1, width * (batch * tokens - (0 if padding is None else int(padding.sum()))))
    mean = layers.sum((1, 2, 3), keepdim=True) / count
    deviations = layers - mean
    if padding is not None:
        deviations = deviations.masked_fill(padding, 0.0)
    return mean, deviations.square().sum((1, 2, 3), keepdim=True) / count
