"""The targets by their names. Each function writes valid files once, and returns what makes and reads changed ones."""

from __future__ import annotations

from collections.abc import Callable

from .corpus_targets import corpus, documents, labelled, sense_lists, sentences
from .hdf5_targets import adaptive, softmax, vectors, weights
from .index_targets import index
from .pool import Target
from .spacy_targets import pipeline_bytes, pipeline_folders
from .store_targets import cache, checkpoints, prepared
from .text_targets import config, options, vocabulary

TARGETS: dict[str, Callable[[], Target]] = {
    "options": options,
    "weights": weights,
    "pipeline_bytes": pipeline_bytes,
    "pipeline_folders": pipeline_folders,
    "checkpoints": checkpoints,
    "softmax": softmax,
    "adaptive": adaptive,
    "vectors": vectors,
    "vocabulary": vocabulary,
    "prepared": prepared,
    "index": index,
    "cache": cache,
    "corpus": corpus,
    "documents": documents,
    "labelled": labelled,
    "sense_lists": sense_lists,
    "sentences": sentences,
    "config": config,
}
