"""The forward pass without gradients: packed batches, weights laid out once, each distinct word encoded once.

Weights have one owner. This is a FrozenBiLM, which has an engine, or a network (modules.BiLM), for which `Engine.of`
makes an engine with copies of its matrices.
"""

from ..modules.loading import PRECISIONS, Precision, dtype_of
from .cache import LayerCache, row_key
from .engine import Engine, FrozenBiLM, token_batches
from .words import CACHED_WORDS

__all__ = [
    "CACHED_WORDS",
    "PRECISIONS",
    "Engine",
    "FrozenBiLM",
    "LayerCache",
    "Precision",
    "dtype_of",
    "row_key",
    "token_batches",
]
