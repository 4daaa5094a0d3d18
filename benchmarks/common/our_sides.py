"""Our side of a measurement: the engine itself, and a pipeline of `elmo` alone. Both without a cache of words, since
the same sentences come again in each round.
"""

import time
from collections.abc import Callable

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.inference import Engine
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.precision import Precision, dtype_of

Sentences = list[list[str]]
Seconds = Callable[[int, int], float]  # for the first n sentences, in batches


def make_engine(bilm: BiLM, precision: Precision) -> Engine:
    """Raises SettingsError where the machine has no such precision."""
    return Engine(bilm, dtype_of(precision, bilm.boundary.device), cached_words=0)


def make_pipeline(files: dict[str, str], precision: Precision) -> Language:
    """files: options_file and weight_file."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {**files, "precision": precision, "cached_words": 0}})
    return nlp


def engine_seconds(engine: Engine, sentences: Sentences) -> Seconds:
    """A number of each batch's layers is read."""

    def seconds(n: int, batch: int) -> float:
        checksum, begin = 0.0, time.perf_counter()
        for k in range(0, n, batch):
            checksum += float(engine.run(sentences[k : min(k + batch, n)])[0][0, 0, 0])
        taken = time.perf_counter() - begin
        assert np.isfinite(checksum)
        return taken

    return seconds


def pipe_seconds(nlp: Language, sentences: Sentences) -> Seconds:
    """The docs' tokens are given. Each doc's mix is read, then what is kept on it is freed, as in a long stream."""
    docs = [Doc(nlp.vocab, words=words) for words in sentences]

    def seconds(n: int, batch: int) -> float:
        checksum, begin = 0.0, time.perf_counter()
        for doc in nlp.pipe(docs[:n], batch_size=batch):
            checksum += float(doc._.elmo[0, 0])
            doc._.elmo = None
        taken = time.perf_counter() - begin
        assert np.isfinite(checksum)
        return taken

    return seconds
