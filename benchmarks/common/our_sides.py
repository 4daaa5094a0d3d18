"""Our sides of a measurement: the engine itself, and a pipeline of `elmo` alone.

Both run without a cache of words, since the same sentences come again in each round.
"""

import time
from collections.abc import Callable

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo.inference import Engine
from spacy_elmo.modules import BiLM
from spacy_elmo.modules.loading import Precision, dtype_of

Sentences = list[list[str]]
Seconds = Callable[[int, int], float]  # for the first n sentences, in batches


def make_engine(bilm: BiLM, precision: Precision) -> Engine:
    """Make an engine without a cache of words.

    bilm: its weights. precision: of the matrix multiplications. Raises SettingsError if the machine does not have it.
    """
    return Engine.of(bilm, dtype_of(precision, bilm.boundary.device), cached_words=0)


def make_pipeline(files: dict[str, str], precision: Precision) -> Language:
    """Make a pipeline of `elmo` alone, without a cache of words.

    files: the settings options_file and weight_file. precision: as in make_engine.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {**files, "precision": precision, "cached_words": 0}})
    return nlp


def engine_seconds(engine: Engine, sentences: Sentences) -> Seconds:
    """Make a function that measures the engine. One number of each batch's layers is read.

    engine: to run. sentences: the words of each. The function's arguments: how many of them, and sentences of a batch.
    """

    def seconds(n: int, batch: int) -> float:
        checksum, begin = 0.0, time.perf_counter()
        for k in range(0, n, batch):
            checksum += float(engine.run(sentences[k : min(k + batch, n)])[0][0, 0, 0])
        taken = time.perf_counter() - begin
        assert np.isfinite(checksum)
        return taken

    return seconds


def pipe_seconds(nlp: Language, sentences: Sentences) -> Seconds:
    """Make a function that measures `nlp.pipe` on docs that have their tokens.

    nlp: to run. sentences: a doc each. One number of each doc's mix is read, and then the doc's layers are freed, as in
    a long stream. The function's arguments: see engine_seconds.
    """
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
