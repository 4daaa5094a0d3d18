"""Threads that share a pipeline, beside threads that save, pickle and load it."""

from __future__ import annotations

import pickle
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import spacy
from spacy.language import Language

from .measures import text

_TEXTS = 60


def shared_pipeline(seconds: float, n_threads: int = 8) -> str:
    """Run threads for some seconds. Returns the figures. Raises the first exception of any thread."""
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    random = Random(0)
    texts = [text(random) for _ in range(_TEXTS)]
    expected = [_layers(nlp, one) for one in texts]
    counts: Counter[str] = Counter()
    errors: list[BaseException] = []
    end = time.monotonic() + seconds

    def check(other: Language, one: int) -> None:
        got = _layers(other, texts[one])
        assert got.shape == expected[one].shape
        assert np.abs(got - expected[one]).max(initial=0.0) <= 1e-5

    def repeat(name: str, work: Callable[[Random], None], seed: int) -> None:
        own = Random(seed)
        try:
            while time.monotonic() < end and not errors:
                work(own)
                counts[name] += 1
        except BaseException as error:
            errors.append(error)

    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "saved")
        nlp.to_disk(saved)
        kinds: list[tuple[str, Callable[[Random], None]]] = [
            *[("docs", lambda own: check(nlp, own.randrange(_TEXTS)))] * n_threads,
            ("saved", lambda own: nlp.to_disk(Path(folder, "again"))),
            ("pickled", lambda own: check(pickle.loads(pickle.dumps(nlp)), own.randrange(_TEXTS))),
            ("loaded", lambda own: check(spacy.load(saved), own.randrange(_TEXTS))),
        ]
        workers = [threading.Thread(target=repeat, args=(*kind, seed)) for seed, kind in enumerate(kinds)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]
    return f"{n_threads} threads, {seconds:.0f} s: {dict(counts)}, all vectors as expected"


def _layers(nlp: Language, one: str) -> np.ndarray:
    layers: np.ndarray = nlp(one)._.elmo_layers
    return layers
