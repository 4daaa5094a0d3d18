"""The scalar mix as a Thinc layer: gamma * sum_j softmax(w)_j h_j (Peters et al. 2018, equation 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

from ..errors import MIX_FINITE, SettingsError, check_whole, shown
from .types import is_number

NAME = "scalar_mix"
EPSILON = 1e-12  # added to the variance, as in bilm-tf, and in AllenNLP before 1.0
LayerNorm = Literal["none", "token", "batch"]
MixModel = Model[list[Floats3d], list[Floats2d]]


@dataclass
class MixSettings:
    """The settings of the mix (see `build_scalar_mix`), in one object: Thinc would save separate attributes."""

    layer_norm: LayerNorm
    trainable: bool
    dropout: float
    l2: float
    initial_w: list[float] | None
    initial_gamma: float


def build_scalar_mix(
    layers: int | None = None,
    layer_norm: LayerNorm = "none",
    trainable: bool = True,
    dropout: float = 0.0,
    l2: float = 0.0,
    scalar_mix_parameters: Sequence[float] | None = None,
    gamma: float = 1.0,
) -> MixModel:
    """Build spacy-elmo.ScalarMix.v1: *Shape:* (layers, tokens, width) -> *Shape:* (tokens, width), for each doc.

    The parameters of the Thinc layer are w, *Shape:* (layers,), before the softmax, and gamma, *Shape:* (1,).

    layers: number of layers; null: that of the source.
    layer_norm: how the layers are normalised before the mix. "none": not at all. "token": each vector with its own
        mean and variance. "batch": each layer with the mean and variance of all its values in the batch without <S>
        and </S>, as bilm-tf does; then a token's vector depends on its batch. Tokens whose layers are all zero
        (whitespace) do not count and stay zero.
    trainable: whether w and gamma are trained.
    dropout: share of the mixed values that is set to 0 in training. `dropout` of [training] has no influence on it.
    l2: 2 * l2 * w is added to the gradient of w, once per update: lambda * ||w||^2 of Peters et al. 2018 (section
        3.3). There the loss is a mean over examples; spaCy's are sums, so the same lambda has less weight.
    scalar_mix_parameters: initial values of w (AllenNLP's name); null: zeros, which give the mean of the layers. With
        trainable = false they never change: [-1e10, -1e10, 0] returns only the top layer.
    gamma: initial value of gamma.

    Raises SettingsError if a value is out of its range.
    """
    if layers is not None:
        check_whole(layers=layers)
    if layer_norm not in get_args(LayerNorm):
        raise SettingsError(f'layer_norm is {layer_norm!r}. Expected "none", "batch" or "token".')
    if not (is_number(dropout) and 0 <= dropout < 1):
        raise SettingsError(f"dropout is {shown(dropout)}. Expected a number, at least 0 and less than 1.")
    if not (is_number(l2) and l2 >= 0):
        raise SettingsError(f"l2 is {l2!r}. Expected a finite number of float32, 0 or more.")
    if not is_number(gamma):
        raise SettingsError(f"gamma is {gamma!r}. Expected a finite number of float32.")
    initial_w = None if layers is None else [0.0] * layers
    if scalar_mix_parameters is not None:
        if not all(map(is_number, scalar_mix_parameters)):
            raise SettingsError(MIX_FINITE.format(got=shown(scalar_mix_parameters)))
        if not len(scalar_mix_parameters) or len(scalar_mix_parameters) != (layers or len(scalar_mix_parameters)):
            raise SettingsError(
                f"scalar_mix_parameters has {len(scalar_mix_parameters)} weights, but layers is {layers}. Give a "
                "weight for each layer."
            )
        initial_w = [float(x) for x in scalar_mix_parameters]
    settings = MixSettings(layer_norm, trainable, dropout, l2, initial_w, gamma)
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


def init(model: MixModel, X: list[Floats3d] | None = None, Y: Any = None) -> None:
    if X and model.has_dim("nO") is None:
        model.set_dim("nO", X[0].shape[-1])
    _reset(model, len(X[0]) if X else 0)


def _reset(model: MixModel, layers: int) -> None:
    """Set w and gamma to their initial values. While the number of layers is not known (0), w has none."""
    settings: MixSettings = model.attrs["settings"]
    initial_w = settings.initial_w or [0.0] * layers
    model.set_param("w", model.ops.asarray1f(initial_w) if initial_w else None)
    model.set_param("gamma", model.ops.asarray1f([settings.initial_gamma]))


@np.errstate(under="ignore")  # of weights that are next to 0
def forward(
    model: MixModel, X: list[Floats3d], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Floats3d]]]:
    """Mix the layers of each doc, *Shape:* (layers, tokens, width) -> *Shape:* (tokens, width)."""
    xp: Any = model.ops.xp
    settings: MixSettings = model.attrs["settings"]
    shapes: list[Any] = [x.shape for x in X]
    for shape in shapes:
        if len(shape) != 3:
            raise SettingsError(
                f"the mix was given an array of shape {shape}. Expected (layers, tokens, width): its source must "
                "be spacy-elmo.Listener.v1 or spacy-elmo.BiLM.v1."
            )
    if not X or len(X[0]) == 0:  # a listener that is being initialised may not know how many layers there will be
        return [xp.zeros(x.shape[1:], "f") for x in X], lambda dY: [xp.zeros_like(x) for x in X]
    if model.has_param("w") is None:
        _reset(model, len(X[0]))
    weights, gamma = softmax(model), float(model.get_param("gamma")[0])
    for x in X:
        if len(x) != len(weights):
            raise SettingsError(
                f"the mix got {len(x)} layers. Expected {len(weights)}: the number in its setting layers, or of "
                "its scalar_mix_parameters, must be the number of the biLM's layers."
            )
    layers, backprop_norm = _normalise(xp, X, settings.layer_norm)
    # doc by doc: an epoch of NER is 1.18 times as long as one without ELMo; with one array for the batch, 1.31 times
    shares = [float(weight) for weight in weights]
    mixed = [_weighted_sum(shares, x) for x in layers]
    result = [gamma * y for y in mixed]
    masks: list[Any] = []
    if is_train and settings.dropout:
        masks = [model.ops.get_dropout_mask(y.shape, settings.dropout) for y in result]
        result = [mask * y for mask, y in zip(masks, result)]

    @np.errstate(under="ignore")
    def backprop(dY: list[Floats2d]) -> list[Floats3d]:
        d_result: list[Any] = [mask * dy for mask, dy in zip(masks, dY)] if masks else list(dY)
        if settings.trainable:
            d_shares = [sum(float(xp.vdot(x[j], d)) for x, d in zip(layers, d_result)) for j in range(len(shares))]
            d_weights = gamma * model.ops.asarray1f(d_shares)
            # the L2 term once per update: after each update the optimizer sets the gradient to zero
            if settings.l2 and not (model.has_grad("w") and model.get_grad("w").any()):
                model.inc_grad("w", 2 * settings.l2 * model.get_param("w"))
            model.inc_grad("w", weights * (d_weights - (weights * d_weights).sum()))
            d_gamma = sum(float(xp.vdot(y, d)) for y, d in zip(mixed, d_result))
            model.inc_grad("gamma", model.ops.asarray1f([d_gamma]))
        return backprop_norm([xp.stack([gamma * share * d for share in shares]) for d in d_result])

    return result, backprop


@np.errstate(under="ignore")
def softmax(model: MixModel) -> Any:
    """Return softmax(w), the weights of the layers, *Shape:* (layers,). w must have a value."""
    weights: Any = model.ops.softmax(model.get_param("w"))
    return weights


def _weighted_sum(shares: list[float], layers: Any) -> Any:
    total = shares[0] * layers[0]
    for share, layer in zip(shares[1:], layers[1:]):
        total += share * layer
    return total


def _normalise(xp: Any, layers: list[Any], kind: str) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Return the layers of the docs as `layer_norm` says, (x - mean) / sqrt(variance + EPSILON), and backprop."""
    if kind == "none":
        return layers, lambda d_normal: d_normal
    ends = [sum(x.shape[1] for x in layers[: i + 1]) for i in range(len(layers) - 1)]
    X = xp.concatenate(layers, axis=1)
    counted = X.any(axis=(0, 2))[:, None]
    axes = (2,) if kind == "token" else (1, 2)
    n_values = X.shape[2] if kind == "token" else max(1, int(counted.sum()) * X.shape[2])

    def mean(values: Any) -> Any:
        return (values * counted).sum(axis=axes, keepdims=True) / n_values

    centred = X - mean(X)
    deviation = xp.sqrt(mean(centred * centred) + EPSILON)
    normal = centred / deviation * counted

    def backprop(d_normal: list[Any]) -> list[Any]:
        dX = xp.concatenate(d_normal, axis=1)
        dX = (dX - mean(dX) - normal * mean(dX * normal)) / deviation * counted
        return list(xp.split(dX, ends, axis=1))

    return list(xp.split(normal, ends, axis=1)), backprop
