"""The softmax and the words of en_mini, the biLM that comes with spacy-elmo."""

from pathlib import Path


def folder() -> Path:
    """Where softmax.hdf5, vocabulary.txt, vocabulary.counts.npy and bilm.sha256 are."""
    return Path(__file__).parent
