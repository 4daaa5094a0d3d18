"""Short docs of all planes of Unicode in one process: memory stays flat, and vectors do not depend on the batch."""

from __future__ import annotations

from itertools import islice
from random import Random

import numpy as np
import spacy

from .measures import resident, text

_ZONE = 1000  # docs between two frees of spaCy's vocabulary
_WARM = 30_000  # docs until caches are full and what was freed is used again


def many_docs(n_docs: int, seed: int = 0) -> str:
    """Embed docs, and compare some with the same docs one by one.

    Returns the figures. Raises AssertionError if a vector differs, or if memory grows by more than 5 % after the first
    30,000 docs, or after the first half if that is less.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    random, sampler, first = Random(seed), Random(seed + 1), max(_ZONE, min(_WARM, n_docs // 2))
    texts = (text(random) for _ in range(n_docs))
    done, tokens, n_samples, largest, early, late = 0, 0, 0, 0.0, 0.0, 0.0
    while chunk := list(islice(texts, _ZONE)):
        with nlp.memory_zone():
            for doc in nlp.pipe(chunk):
                tokens += len(doc)
                if sampler.random() < 200 / n_docs:
                    alone = nlp(doc.text)
                    largest = max(largest, float(np.abs(alone._.elmo_layers - doc._.elmo_layers).max(initial=0.0)))
                    n_samples += 1
        done += len(chunk)
        if done <= first:
            early = max(early, resident())
        late = resident()
    assert largest <= 1e-5, largest
    assert late <= 1.05 * early, f"{early:.0f} MB after {first:,} docs, {late:.0f} MB at the end"
    return (
        f"{n_docs:,} docs, {tokens:,} tokens: {early:.0f} MB after {first:,} docs, {late:.0f} MB at the end; "
        f"{n_samples} samples, largest difference {largest:.1e}"
    )
