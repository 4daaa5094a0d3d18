"""The network in plain torch: who trains it or runs it with gradients, and what the engine is tested against."""

from .bilm import BiLM, BiLMOutput
from .loading import Arrays, check_files, load_arrays, load_bilm, load_options
from .lstm_cell import LstmState

__all__ = [
    "Arrays",
    "BiLM",
    "BiLMOutput",
    "LstmState",
    "check_files",
    "load_arrays",
    "load_bilm",
    "load_options",
]
