"""Short docs of all planes of Unicode in one process: memory stays flat, and vectors do not depend on the batch.

spaCy's hash tables grow with the number of different words that a process has seen, also with a memory zone. So the
same docs go through a tokenizer alone in a process of its own, and what that one grows by does not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from random import Random

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from .measures import resident, text

_ZONE = 1000  # docs between two frees of spaCy's vocabulary
_WARM = 30_000  # docs until caches are full and what was freed is used again


class _Memory:
    """What a process has after the first docs, and at its end, in MB."""

    def __init__(self, n_docs: int) -> None:
        self.first = max(_ZONE, min(_WARM, n_docs // 2))
        self.early, self.late = 0.0, 0.0

    def measure(self, done: int) -> None:
        """done: number of docs so far."""
        self.late = resident()
        if done <= self.first:
            self.early = max(self.early, self.late)


def many_docs(n_docs: int, seed: int = 0) -> str:
    """Embed docs, and compare some with the same docs one by one.

    Returns the figures. Raises AssertionError if a vector differs, or if memory grows by more than 5 % and what spaCy
    alone grows by, after the first 30,000 docs, or after the first half if that is less.
    """
    command = [sys.executable, "-m", "scripts.harness.soak.many_docs", str(n_docs), str(seed)]
    spacys = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    sampler, memory = Random(seed + 1), _Memory(n_docs)
    tokens, n_samples, largest = 0, 0, 0.0
    for doc in _docs(nlp, n_docs, seed, memory):
        tokens += len(doc)
        if sampler.random() < 200 / n_docs:
            alone = nlp(doc.text)
            largest = max(largest, float(np.abs(alone._.elmo_layers - doc._.elmo_layers).max(initial=0.0)))
            n_samples += 1
    figures = (
        f"{n_docs:,} docs, {tokens:,} tokens: {memory.early:.0f} MB after {memory.first:,} docs, {memory.late:.0f} MB "
        f"at the end (spaCy alone {spacys['early']:.0f} and {spacys['late']:.0f} MB); {n_samples} samples, largest "
        f"difference {largest:.1e}"
    )
    assert largest <= 1e-5, figures
    assert memory.late <= 1.05 * memory.early + max(0.0, spacys["late"] - spacys["early"]), figures
    return figures


def _docs(nlp: Language, n_docs: int, seed: int, memory: _Memory) -> Iterator[Doc]:
    """Yield the docs of random texts, in memory zones, and measure the memory after each zone."""
    random = Random(seed)
    texts = (text(random) for _ in range(n_docs))
    done = 0
    while chunk := list(islice(texts, _ZONE)):
        with nlp.memory_zone():
            yield from nlp.pipe(chunk)
        done += len(chunk)
        memory.measure(done)


def _spacy_alone(n_docs: int, seed: int) -> None:
    """Print the memory of spaCy's tokenizer alone, in the same words and zones."""
    memory = _Memory(n_docs)
    for _ in _docs(spacy.blank("en"), n_docs, seed, memory):
        pass
    print(json.dumps({"early": memory.early, "late": memory.late}))


if __name__ == "__main__":
    _spacy_alone(int(sys.argv[1]), int(sys.argv[2]))
