"""Softmax and words of en_core, a biLM for spacy-elmo."""

from pathlib import Path


def folder() -> Path:
    """Where the files are."""
    return Path(__file__).parent
