"""The frozen forward pass: packed batches, prepacked weights, each distinct word encoded once."""

from .batches import token_batches
from .engine import Engine
from .precision import PRECISIONS, Precision, dtype_of
from .word_vectors import CACHED_WORDS

__all__ = ["CACHED_WORDS", "PRECISIONS", "Engine", "Precision", "dtype_of", "token_batches"]
