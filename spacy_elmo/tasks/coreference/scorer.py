"""The scorer `spacy-elmo.coreference_scorer.v1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from ..shared import Scorer
from . import PREFIX, clusters_of, places_of

Cluster = frozenset[Hashable]
Clusters = Sequence[Cluster]
# numerators and denominators of recall and of precision
Counts = tuple[float, float, float, float]


def build_coreference_scorer(prefix: str = PREFIX, singletons: bool = True) -> Scorer:
    """Build spacy-elmo.coreference_scorer.v1: examples -> scores.

    prefix: the clusters are the span groups prefix_1, prefix_2 ... of a doc. In a pipeline, the component's own prefix
        takes its place.
    singletons: whether clusters of one mention count, as in LitBank's papers. false: they are left out on both sides,
        as in OntoNotes, which has none. Scores with and without them can't be compared.

    The scores: coref_f, the mean F1 of MUC, B-cubed and CEAF-phi4 (the score of CoNLL-2012); and for each of muc, b3,
    ceaf, lea and mentions coref_muc_p, coref_muc_r and coref_muc_f, and so on. All are None if no reference has
    clusters.
    """
    return partial(_score, prefix, singletons)


def _score(
    own_prefix: str, singletons: bool, examples: Iterable[Example], /, *, prefix: str | None = None, **_: Any
) -> dict[str, float | None]:
    prefix = prefix or own_prefix
    totals: dict[str, Counts] = dict.fromkeys(METRICS, (0.0, 0.0, 0.0, 0.0))
    for example in examples:
        key, response = (_clusters(doc, prefix, singletons) for doc in (example.reference, example.predicted))
        for name, metric in METRICS.items():
            one, two, three, four = (sum(pair) for pair in zip(totals[name], metric(key, response)))
            totals[name] = one, two, three, four
    known = totals["mentions"][1] > 0
    scores: dict[str, float | None] = {"coref_f": None}
    for name, (recalled, wanted, precise, got) in totals.items():
        recall, precision = recalled / wanted if wanted else 0.0, precise / got if got else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        for letter, score in (("p", precision), ("r", recall), ("f", f1)):
            scores[f"coref_{name}_{letter}"] = score if known else None
    if known:
        scores["coref_f"] = sum(scores[f"coref_{name}_f"] or 0.0 for name in ("muc", "b3", "ceaf")) / 3
    return scores


def _clusters(doc: Doc, prefix: str, singletons: bool) -> Clusters:
    """Return clusters as sets of places in the text, so that docs with other tokens or blanks can be compared."""
    found = [cluster for cluster in clusters_of(doc, prefix) if singletons or len(cluster) > 1]
    if not found:
        return []
    places = places_of(doc)
    return [frozenset((int(places[span.start_char]), int(places[span.end_char])) for span in one) for one in found]


def _mentions(key: Clusters, response: Clusters) -> Counts:
    wanted, got = frozenset().union(*key), frozenset().union(*response)
    both = len(wanted & got)
    return both, len(wanted), both, len(got)


def _both_ways(
    share: Callable[[Cluster, Counter[int], Clusters], tuple[float, float]], key: Clusters, response: Clusters
) -> Counts:
    """Add up a cluster's numerator and denominator over the key, and over the response."""
    sides = []
    for own, others in ((key, response), (response, key)):
        pairs = [share(cluster, overlaps, others) for cluster, overlaps in zip(own, _overlaps(own, others))]
        sides.append((sum(number for number, _ in pairs), sum(number for _, number in pairs)))
    return *sides[0], *sides[1]


def _overlaps(clusters: Clusters, others: Clusters) -> Iterable[Counter[int]]:
    """Return for each cluster the number of mentions in common with each other cluster that has any."""
    owner = {mention: number for number, other in enumerate(others) for mention in other}
    return (Counter(owner[mention] for mention in cluster if mention in owner) for cluster in clusters)


def _muc(cluster: Cluster, overlaps: Counter[int], others: Clusters) -> tuple[float, float]:
    """Count links: those missing to join what the other side has divided (Vilain et al. 1995)."""
    parts = len(overlaps) + len(cluster) - overlaps.total()
    return len(cluster) - parts, len(cluster) - 1


def _b_cubed(cluster: Cluster, overlaps: Counter[int], others: Clusters) -> tuple[float, float]:
    """Count for each mention the share of its cluster that it is with (Bagga and Baldwin 1998)."""
    return sum(common**2 for common in overlaps.values()) / len(cluster), len(cluster)


def _lea(cluster: Cluster, overlaps: Counter[int], others: Clusters) -> tuple[float, float]:
    """Count the share of links, weighted by size; a single mention has one to itself (Moosavi and Strube 2016)."""
    size = len(cluster)
    if size == 1:
        return float(any(len(others[other]) == 1 for other in overlaps)), 1
    links = sum(common * (common - 1) / 2 for common in overlaps.values())
    return size * links / (size * (size - 1) / 2), size


def _ceaf(key: Clusters, response: Clusters) -> Counts:
    """Count the similarity of the best one-to-one assignment of clusters (Luo 2005): phi4, of 1 at most for a pair."""
    similarity = np.zeros((len(key), len(response)))
    for row, overlaps in enumerate(_overlaps(key, response)):
        for column, common in overlaps.items():
            similarity[row, column] = 2 * common / (len(key[row]) + len(response[column]))
    # rows and columns without a mention in common with another are assigned to nothing
    similarity = similarity[similarity.any(axis=1)][:, similarity.any(axis=0)]
    total = _best_total(similarity if similarity.shape[0] <= similarity.shape[1] else similarity.T)
    return total, len(key), total, len(response)


def _best_total(similarity: NDArray[np.float64]) -> float:
    """Return the highest sum if each row, of which there are no more than columns, and each column is used once.

    It is found by shortest augmenting paths (Kuhn 1955). Row and column 0 are a dummy, from which each path begins.
    """
    rows, columns = similarity.shape
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    row_of = np.zeros(columns + 1, dtype=np.int64)  # 0: the column is free
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        shortest, previous = np.full(columns + 1, np.inf), np.zeros(columns + 1, dtype=np.int64)
        done = np.zeros(columns + 1, dtype=bool)
        while row_of[column] or column == 0:
            done[column] = True
            current = row_of[column]
            reduced = -similarity[current - 1] - row_price[current] - column_price[1:]
            better = ~done[1:] & (reduced < shortest[1:])
            shortest[1:][better], previous[1:][better] = reduced[better], column
            nearest = int(np.argmin(np.where(done, np.inf, shortest)[1:])) + 1
            step = shortest[nearest]
            row_price[row_of[done]] += step
            column_price[done] -= step
            shortest[~done] -= step
            column = nearest
        while column:
            row_of[column], column = row_of[previous[column]], int(previous[column])
    return float(sum(similarity[row - 1, place] for place, row in enumerate(row_of[1:]) if row))


METRICS: dict[str, Callable[[Clusters, Clusters], Counts]] = {
    "mentions": _mentions,
    "muc": partial(_both_ways, _muc),
    "b3": partial(_both_ways, _b_cubed),
    "ceaf": _ceaf,
    "lea": partial(_both_ways, _lea),
}
