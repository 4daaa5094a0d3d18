"""The frozen forward pass: packed batches, prepacked weights, each distinct word encoded once."""

from .batches import token_batches
from .engine import Engine
from .precision import PRECISIONS, Precision, dtype_of

__all__ = ["PRECISIONS", "Engine", "Precision", "dtype_of", "token_batches"]
