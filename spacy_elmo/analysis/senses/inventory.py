"""The senses of a training corpus: how frequent they are, and the mean vector of each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..rows import Array
from .corpus import Instance, Lemma


class SenseInventory:
    """Collects the instances of a training corpus. A sum of vectors is kept for each sense, and no other vectors."""

    def __init__(self) -> None:
        self._sums: dict[Lemma, dict[str, Array]] = {}
        self._counts: dict[Lemma, dict[str, int]] = {}

    def __contains__(self, lemma: Lemma) -> bool:
        return lemma in self._counts

    def __len__(self) -> int:
        """Return the number of lemmas."""
        return len(self._counts)

    @property
    def n_senses(self) -> int:
        """Number of senses of all lemmas."""
        return sum(map(len, self._counts.values()))

    def add(self, instance: Instance, vectors: Array) -> None:
        """Add an instance to each of its senses. vectors: *Shape:* (rows, width)."""
        sums, counts = self._sums.setdefault(instance.lemma, {}), self._counts.setdefault(instance.lemma, {})
        for sense in instance.senses:
            sums[sense] = sums[sense] + vectors if sense in sums else vectors
            counts[sense] = counts.get(sense, 0) + 1

    def most_frequent(self, lemma: Lemma) -> str | None:
        """Return the most frequent sense of a lemma, the first one of equals; None if the lemma was not added."""
        counts = self._counts.get(lemma)
        return max(counts, key=counts.__getitem__) if counts else None

    def nearest(self, lemma: Lemma, vectors: Array) -> list[str]:
        """Return for each row the sense whose mean vector has the largest cosine with it.

        lemma: which was added.
        vectors: *Shape:* (rows, width).
        """
        senses = list(self._sums[lemma])
        means = np.stack([self._sums[lemma][sense] for sense in senses])  # their lengths make no difference
        cosines = (_unit(means) * _unit(vectors)).sum(-1)  # (senses, rows)
        return [senses[i] for i in cosines.argmax(0)]


class FirstSenses:
    """The first sense of each lemma: the listed one, or the most frequent one of the training corpus.

    listed: such as WordNet's first senses.
    inventory: of the training corpus.
    """

    def __init__(self, listed: Mapping[Lemma, str], inventory: SenseInventory) -> None:
        self._listed, self._inventory = listed, inventory

    def of(self, lemma: Lemma) -> str | None:
        """Return the first sense of a lemma; None if the lemma is in neither."""
        return self._listed.get(lemma) or self._inventory.most_frequent(lemma)


def _unit(vectors: Array) -> Array:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Array = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit
