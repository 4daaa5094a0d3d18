"""The network in plain torch."""

from .bilm import BiLM, BiLMOutput
from .loading import check_files, load_bilm
from .lstm.layers import LstmState

__all__ = ["BiLM", "BiLMOutput", "LstmState", "check_files", "load_bilm"]
