"""The frozen forward pass: packed batches, prepacked weights, each distinct word encoded once."""

from ..modules.precision import PRECISIONS, Precision, dtype_of
from .batches import token_batches
from .engine import Engine
from .layer_cache import LayerCache, row_key
from .word_vectors import CACHED_WORDS

__all__ = ["CACHED_WORDS", "PRECISIONS", "Engine", "LayerCache", "Precision", "dtype_of", "row_key", "token_batches"]
