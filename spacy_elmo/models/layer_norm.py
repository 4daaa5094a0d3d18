"""Layer norm of the mix, and its gradient."""

from collections.abc import Callable
from typing import Any

EPSILON = 1e-12  # of the originals


def normalise(xp: Any, layers: list[Any], kind: str) -> tuple[list[Any], Callable[[list[Any]], list[Any]]]:
    """Normalise a batch's layers, (layers, tokens, width) each; see build_scalar_mix for the kinds.

    xp: numpy or cupy. Returns the results and what takes their gradients to the layers' gradients.
    """
    if kind == "none":
        return layers, lambda d_normal: d_normal
    ends = [sum(x.shape[1] for x in layers[: i + 1]) for i in range(len(layers) - 1)]
    whole = xp.concatenate(layers, axis=1)
    words = whole.any(axis=(0, 2))[:, None]
    axes = (2,) if kind == "token" else (1, 2)
    count = whole.shape[2] if kind == "token" else max(1, int(words.sum()) * whole.shape[2])

    def mean(values: Any) -> Any:
        return (values * words).sum(axis=axes, keepdims=True) / count

    centred = whole - mean(whole)
    deviation = xp.sqrt(mean(centred * centred) + EPSILON)
    normal = centred / deviation * words

    def backprop(d_normal: list[Any]) -> list[Any]:
        d_whole = xp.concatenate(d_normal, axis=1)
        d_whole = (d_whole - mean(d_whole) - normal * mean(d_whole * normal)) / deviation * words
        return list(xp.split(d_whole, ends, axis=1))

    return list(xp.split(normal, ends, axis=1)), backprop
