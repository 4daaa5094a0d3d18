"""The frozen forward pass: packed batches, prepacked weights, each distinct word encoded once."""

from .batches import token_batches
from .engine import Engine

__all__ = ["Engine", "token_batches"]
