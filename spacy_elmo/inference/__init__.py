"""The forward pass without gradients: packed batches, weights laid out once, each distinct word encoded once.

The weights have one owner, a network (modules.BiLM). The engine is derived from it, and `Embedder` has both.
"""

from .cache import LayerCache
from .embedder import Embedder, token_batches
from .engine import Engine
from .linear import PRECISIONS, Precision, dtype_of
from .words import CACHED_WORDS

__all__ = [
    "CACHED_WORDS",
    "PRECISIONS",
    "Embedder",
    "Engine",
    "LayerCache",
    "Precision",
    "dtype_of",
    "token_batches",
]
