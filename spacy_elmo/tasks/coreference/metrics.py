"""MUC, B-cubed, CEAF-phi4 and LEA: how well the clusters of docs agree with the key's.

Definitions for predicted mentions: Pradhan et al. 2014, "Scoring Coreference Partitions of Predicted Mentions"; LEA:
Moosavi and Strube 2016. Mentions agree if they begin and end at the same characters, whitespace not counted. As in the
scorer of CoNLL-2012, the numerators and denominators of all docs are added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from .assignment import best_total

Cluster = frozenset[Hashable]
Clusters = Sequence[Cluster]


class Counts(NamedTuple):
    """Numerators and denominators of recall and precision."""

    recalled: float = 0.0
    key: float = 0.0
    precise: float = 0.0
    response: float = 0.0

    def plus(self, other: Counts) -> Counts:
        """Return the sums."""
        return Counts(*(one + two for one, two in zip(self, other)))

    @property
    def recall(self) -> float:
        return self.recalled / self.key if self.key else 0.0

    @property
    def precision(self) -> float:
        return self.precise / self.response if self.response else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def mentions(key: Clusters, response: Clusters) -> Counts:
    """Count the mentions that both have."""
    wanted, got = frozenset().union(*key), frozenset().union(*response)
    both = len(wanted & got)
    return Counts(both, len(wanted), both, len(got))


def muc(key: Clusters, response: Clusters) -> Counts:
    """Count links: those missing to join what the other side has divided (Vilain et al. 1995)."""
    return _both_ways(_muc, key, response)


def b_cubed(key: Clusters, response: Clusters) -> Counts:
    """Count for each mention the share of its cluster that it is with (Bagga and Baldwin 1998)."""
    return _both_ways(_b_cubed, key, response)


def lea(key: Clusters, response: Clusters) -> Counts:
    """Count the share of each cluster's links, weighted by its size; a single mention has a link to itself."""
    return _both_ways(_lea, key, response)


def ceaf(key: Clusters, response: Clusters) -> Counts:
    """Count the similarity of the best one-to-one assignment of clusters (Luo 2005): phi4, of 1 at most for a pair."""
    similarity = {
        (row, column): 2 * common / (len(key[row]) + len(response[column]))
        for row, overlaps in enumerate(_overlaps(key, response))
        for column, common in overlaps.items()
    }
    total = best_total(similarity)
    return Counts(total, len(key), total, len(response))


def _both_ways(
    share: Callable[[Cluster, Counter[int], Clusters], tuple[float, float]], key: Clusters, response: Clusters
) -> Counts:
    sums = []
    for own, others in ((key, response), (response, key)):
        pairs = [share(cluster, overlaps, others) for cluster, overlaps in zip(own, _overlaps(own, others))]
        sums += [sum(number for number, _ in pairs), sum(number for _, number in pairs)]
    return Counts(*sums)


def _overlaps(clusters: Clusters, others: Clusters) -> Iterable[Counter[int]]:
    """For each cluster, the number of mentions in common with each other cluster that has any."""
    owner = {mention: number for number, other in enumerate(others) for mention in other}
    return (Counter(owner[mention] for mention in cluster if mention in owner) for cluster in clusters)


def _muc(cluster: Cluster, overlaps: Counter[int], others: Clusters) -> tuple[float, float]:
    parts = len(overlaps) + len(cluster) - overlaps.total()
    return len(cluster) - parts, len(cluster) - 1


def _b_cubed(cluster: Cluster, overlaps: Counter[int], others: Clusters) -> tuple[float, float]:
    return sum(common**2 for common in overlaps.values()) / len(cluster), len(cluster)


def _lea(cluster: Cluster, overlaps: Counter[int], others: Clusters) -> tuple[float, float]:
    size = len(cluster)
    if size == 1:
        return float(any(len(others[other]) == 1 for other in overlaps)), 1
    links = sum(common * (common - 1) / 2 for common in overlaps.values())
    return size * links / (size * (size - 1) / 2), size
