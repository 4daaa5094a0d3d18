"""A biLM whose vectors a test chooses."""

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np


def fake_bilm(layers: int, width: int, vector: Callable[[int, Sequence[str], int], Sequence[float]]) -> Any:
    """What probes need of an Embedder. Sentences come in reverse order, as a biLM's come in any order.

    layers, width: its sizes. vector: of a layer, a sentence and a place in it.
    """

    def embed(sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, np.ndarray]]:
        for i, words in reversed(list(enumerate(sentences))):
            values = [[vector(layer, words, place) for place in range(len(words))] for layer in range(layers)]
            yield i, np.array(values, np.float32).reshape(layers, len(words), width)

    return SimpleNamespace(options=SimpleNamespace(layers=layers, width=width), embed=embed)
