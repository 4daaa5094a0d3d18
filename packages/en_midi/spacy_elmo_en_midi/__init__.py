"""en_midi, a biLM for spacy-elmo, with its softmax and its words."""

from pathlib import Path


def folder() -> Path:
    """Where options.json, weights.hdf5, softmax.hdf5, vocabulary.txt and vocabulary.counts.npy are."""
    return Path(__file__).parent
