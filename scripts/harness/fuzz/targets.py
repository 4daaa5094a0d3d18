"""The targets by their names. Each function writes valid files once, and returns what makes and reads changed ones."""

from __future__ import annotations

from collections.abc import Callable

from .hdf5_targets import adaptive, softmax, vectors, weights
from .index_targets import index
from .pool import Target
from .spacy_targets import pipeline_bytes, pipeline_folders
from .store_targets import cache, checkpoints, prepared
from .text_targets import config, corpus, options, sentences, vocabulary

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
    "sentences": sentences,
    "config": config,
}
