"""Layer norm of the mix, and its gradient."""

from collections.abc import Callable
from typing import Any

EPSILON = 1e-12  # of the originals


def normalise(xp: Any, layers: Any, kind: str) -> tuple[Any, Callable[[Any], Any]]:
    """Normalise (layers, tokens, width); see build_scalar_mix for the kinds.

    xp: numpy or cupy. Returns the result and what takes its gradient to the layers' gradient.
    """
    if kind == "none":
        return layers, lambda d_normal: d_normal
    words = layers.any(axis=(0, 2))[:, None]
    axes = (2,) if kind == "token" else (1, 2)
    count = layers.shape[2] if kind == "token" else max(1, int(words.sum()) * layers.shape[2])

    def mean(values: Any) -> Any:
        return (values * words).sum(axis=axes, keepdims=True) / count

    centred = layers - mean(layers)
    deviation = xp.sqrt(mean(centred * centred) + EPSILON)
    normal = centred / deviation * words

    def backprop(d_normal: Any) -> Any:
        return (d_normal - mean(d_normal) - normal * mean(d_normal * normal)) / deviation * words

    return normal, backprop
