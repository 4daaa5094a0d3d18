"""The mix of the layers as a Thinc layer: gamma * sum_j softmax(w)_j h_j, with its own backprop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ..errors import Errors, SettingsError, shown
from .layer_norm import normalise

NAME = "scalar_mix"
LARGEST = float(np.finfo(np.float32).max)
LayerNorm = Literal["none", "token", "batch"]
MixModel = Model[list[Floats3d], list[Floats2d]]


@dataclass
class MixSettings:
    """See build_scalar_mix. No plain attributes, which thinc would save: a loaded mix obeys its own config."""

    layer_norm: LayerNorm
    trainable: bool
    dropout: float
    l2: float
    start: list[float] | None
    gamma: float


def build_scalar_mix(
    layers: int | None = None,
    layer_norm: LayerNorm = "none",
    trainable: bool = True,
    dropout: float = 0.0,
    l2: float = 0.0,
    scalar_mix_parameters: Sequence[float] | None = None,
    gamma: float = 1.0,
) -> MixModel:
    """spacy-elmo.ScalarMix.v1: (layers, tokens, width) each -> (tokens, width) each.

    Parameters of the Thinc layer: w (layers,), before the softmax, and gamma (1,).

    layers: how many there are; null: as many as the source gives.
    layer_norm: "none"; "token": each vector by its own mean and deviation; "batch": each layer by the mean and
        deviation of all its values in the batch, <S> and </S> left out (bilm-tf's; a token's vector then depends on
        its batch). Tokens whose layers are all zero (whitespace) do not count and stay zero.
    trainable: whether w and gamma are learnt.
    dropout: on the mix, in training. [training] dropout does not reach it.
    l2: adds 2 * l2 * w to the gradient of w, once per update. The paper's term lambda * sum w^2 stands beside a loss
        that is a mean over examples; spaCy's losses are sums over the batch, so that the same lambda weighs less.
    scalar_mix_parameters: what w starts from (AllenNLP's name); null: zeros, the mean of the layers. With
        trainable = false they stay: [-1e10, -1e10, 0] is the top layer alone.
    gamma: what gamma starts from.
    """
    if layers is not None and (not isinstance(layers, int) or isinstance(layers, bool) or layers < 1):
        raise SettingsError(Errors.MIX_NUMBER.format(got=layers))
    if layer_norm not in get_args(LayerNorm):
        raise SettingsError(Errors.MIX_LAYER_NORM.format(got=layer_norm))
    if not (_is_number(dropout) and 0 <= dropout < 1):
        raise SettingsError(Errors.MIX_DROPOUT.format(got=dropout))
    if not (_is_number(l2) and l2 >= 0):
        raise SettingsError(Errors.MIX_L2.format(got=l2))
    if not _is_number(gamma):
        raise SettingsError(Errors.MIX_GAMMA.format(got=gamma))
    if scalar_mix_parameters is not None:
        if not all(map(_is_number, scalar_mix_parameters)):
            raise SettingsError(Errors.MIX_FINITE.format(name="scalar_mix", got=shown(scalar_mix_parameters)))
        if not len(scalar_mix_parameters) or len(scalar_mix_parameters) != (layers or len(scalar_mix_parameters)):
            raise SettingsError(Errors.MIX_LAYERS_SET.format(got=len(scalar_mix_parameters), expected=layers))
        layers = len(scalar_mix_parameters)
    start = None if layers is None else [float(x) for x in scalar_mix_parameters or [0.0] * layers]
    settings = MixSettings(layer_norm, trainable, dropout, l2, start, gamma)
    model: MixModel = Model(
        NAME,
        forward,
        init=init,
        dims={"nO": None},
        params={"w": None, "gamma": None},
        attrs={"settings": settings},
    )
    _reset(model, 0)
    return model


def _is_number(value: object) -> bool:
    """Whether float32 can hold it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(abs(value) <= LARGEST)


def init(model: MixModel, X: list[Floats3d] | None = None, Y: Any = None) -> None:
    """Set w and gamma to what they start from. X: (layers, tokens, width) each; gives the number of layers."""
    if X and model.has_dim("nO") is None:
        model.set_dim("nO", X[0].shape[-1])
    _reset(model, len(X[0]) if X else 0)


def _reset(model: MixModel, layers: int) -> None:
    settings: MixSettings = model.attrs["settings"]
    start = settings.start or [0.0] * layers
    model.set_param("w", model.ops.asarray1f(start) if start else None)
    model.set_param("gamma", model.ops.asarray1f([settings.gamma]))


def softmax(model: MixModel) -> Any:
    """The weights of the layers. *Shape:* (layers,)."""
    w: Any = model.get_param("w")
    exp = model.ops.xp.exp(w - w.max())
    return exp / exp.sum()


def forward(
    model: MixModel, X: list[Floats3d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats3d]]]:
    """X: (layers, tokens, width) each. Returns (tokens, width) each."""
    xp: Any = model.ops.xp
    settings: MixSettings = model.attrs["settings"]
    shapes: list[Any] = [x.shape for x in X]
    for shape in shapes:
        if len(shape) != 3:
            raise SettingsError(Errors.MIX_AXES.format(got=shape))
    if not X or len(X[0]) == 0:  # a listener that is being initialised may not know how many layers there will be
        return [xp.zeros(x.shape[1:], "f") for x in X], lambda dY: [xp.zeros_like(x) for x in X]
    if model.has_param("w") is None:
        _reset(model, len(X[0]))
    weights, gamma = softmax(model), float(model.get_param("gamma")[0])
    for x in X:
        if len(x) != len(weights):
            raise SettingsError(Errors.MIX_GIVEN.format(got=len(x), expected=len(weights)))
    layers, backprop_norm = normalise(xp, X, settings.layer_norm)
    # doc by doc: with one array of the whole batch an epoch of NER takes 1.31 times that on x alone, in place of 1.18
    shares = [float(weight) for weight in weights]
    mixed = [_weighted_sum(shares, x) for x in layers]
    result = [gamma * y for y in mixed]
    masks: list[Any] = []
    if is_train and settings.dropout:
        masks = [model.ops.get_dropout_mask(y.shape, settings.dropout) for y in result]
        result = [mask * y for mask, y in zip(masks, result)]

    def backprop(dY: list[Floats2d]) -> list[Floats3d]:
        d_result: list[Any] = [mask * dy for mask, dy in zip(masks, dY)] if masks else list(dY)
        if settings.trainable:
            d_shares = [sum(float(xp.vdot(x[j], d)) for x, d in zip(layers, d_result)) for j in range(len(shares))]
            d_weights = gamma * model.ops.asarray1f(d_shares)
            _add_l2(model, settings.l2)
            model.inc_grad("w", weights * (d_weights - (weights * d_weights).sum()))
            d_gamma = sum(float(xp.vdot(y, d)) for y, d in zip(mixed, d_result))
            model.inc_grad("gamma", model.ops.asarray1f([d_gamma]))
        return backprop_norm([xp.stack([gamma * share * d for share in shares]) for d in d_result])

    return result, backprop


def _weighted_sum(shares: list[float], layers: Any) -> Any:
    """layers: (layers, tokens, width). Returns (tokens, width)."""
    total = shares[0] * layers[0]
    for share, layer in zip(shares[1:], layers[1:]):
        total += share * layer
    return total


def _add_l2(model: MixModel, l2: float) -> None:
    """Once per update: an optimizer sets a gradient to zero when it has used it."""
    if l2 and not (model.has_grad("w") and model.get_grad("w").any()):
        model.inc_grad("w", 2 * l2 * model.get_param("w"))
