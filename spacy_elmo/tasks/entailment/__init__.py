"""Entailment: whether a hypothesis follows from a premise, contradicts it, or neither."""

from .pairs import make_pair, make_pairs

__all__ = ["make_pair", "make_pairs"]
