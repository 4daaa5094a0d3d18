"""Layer normalisation before the scalar mix, and its gradient."""

from collections.abc import Callable
from typing import Any

EPSILON = 1e-12  # added to the variance, as in bilm-tf, and in AllenNLP before 1.0


def normalise(xp: Any, layers: list[Any], kind: str) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Normalise the layers of a batch: (x - mean) / sqrt(variance + EPSILON).

    Tokens whose layers are all zero do not count in a mean or a variance, and stay zero.

    xp: numpy or cupy.
    layers: *Shape:* (layers, tokens, width) for each doc.
    kind: "none": nothing is changed. "token": each vector with its own mean and variance. "batch": each layer with the
        mean and variance of all its values in the batch.

    Returns the normalised layers, and backprop, which maps gradients of the result to gradients of `layers`. All have
    the shapes of `layers`.
    """
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
