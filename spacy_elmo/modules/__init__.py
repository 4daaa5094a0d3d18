"""The network in plain torch."""

from .bilm import BiLM, BiLMOutput
from .lstm import LstmState

__all__ = ["BiLM", "BiLMOutput", "LstmState"]
