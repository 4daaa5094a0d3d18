"""The scorer `spacy-elmo.coreference_scorer.v1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example

from .annotations import PREFIX, clusters_of
from .model import places_of

Array = NDArray[Any]


def best_total(similarity: Mapping[tuple[int, int], float]) -> float:
    """Return the highest sum of similarities if each row and each column is used once, at most.

    similarity: (row, column) -> a positive number; other pairs have 0.
    """
    return sum(_dense_total(block) for block in _blocks(similarity))


def _blocks(similarity: Mapping[tuple[int, int], float]) -> list[Array]:
    """Divide into blocks without common rows or columns, which are small: most clusters overlap with few others."""
    block_of_row: dict[int, dict[tuple[int, int], float]] = {}
    block_of_column: dict[int, dict[tuple[int, int], float]] = {}
    for (row, column), value in similarity.items():
        parts = [one for one in (block_of_row.get(row), block_of_column.get(column)) if one is not None]
        block = max(parts, key=len, default={})
        others = [one for one in parts if one is not block]
        for pairs in ({(row, column): value}, *others):
            block.update(pairs)
            for other_row, other_column in pairs:
                block_of_row[other_row] = block_of_column[other_column] = block
    return [_dense(block) for block in {id(block): block for block in block_of_row.values()}.values()]


def _dense(block: Mapping[tuple[int, int], float]) -> Array:
    rows = {row: place for place, row in enumerate(sorted({row for row, _ in block}))}
    columns = {column: place for place, column in enumerate(sorted({column for _, column in block}))}
    result = np.zeros((len(rows), len(columns)))
    for (row, column), value in block.items():
        result[rows[row], columns[column]] = value
    return result if len(rows) <= len(columns) else result.T


def _dense_total(similarity: Array) -> float:
    """Return the highest sum of a matrix that has no more rows than columns: shortest augmenting paths (Kuhn 1955).

    Row and column 0 of the arrays are a dummy, from which each path begins.
    """
    rows, columns = similarity.shape
    cost = -similarity
    row_price, column_price = np.zeros(rows + 1), np.zeros(columns + 1)
    row_of = np.zeros(columns + 1, dtype=np.int64)  # 0: the column is free
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        shortest, previous = np.full(columns + 1, np.inf), np.zeros(columns + 1, dtype=np.int64)
        done = np.zeros(columns + 1, dtype=bool)
        while row_of[column] or column == 0:
            done[column] = True
            current = row_of[column]
            reduced = cost[current - 1] - row_price[current] - column_price[1:]
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


METRICS = {"mentions": mentions, "muc": muc, "b3": b_cubed, "ceaf": ceaf, "lea": lea}
CONLL = ("muc", "b3", "ceaf")


def build_coreference_scorer(prefix: str = PREFIX, singletons: bool = True) -> Callable[..., dict[str, Any]]:
    """Build spacy-elmo.coreference_scorer.v1: examples -> scores.

    prefix: the clusters are the span groups prefix_1, prefix_2 ... of a doc. In a pipeline, the component's own prefix
        takes its place.
    singletons: whether clusters of one mention count, as in LitBank's papers. false: they are left out on both sides,
        as in OntoNotes, which has none. Scores with and without them can't be compared.

    The scores: coref_f, the mean F1 of MUC, B-cubed and CEAF-phi4 (the score of CoNLL-2012); and for each of muc, b3,
    ceaf, lea and mentions coref_muc_p, coref_muc_r and coref_muc_f, and so on.
    """
    return partial(_score, prefix, singletons)


def score_coreference(
    examples: Iterable[Example], *, prefix: str = PREFIX, singletons: bool = True, **_: Any
) -> dict[str, float | None]:
    """Score the clusters of docs; None for all scores if no reference has any.

    The settings are those of `build_coreference_scorer`.

    Raises AnnotationError if a doc has wrong clusters.
    """
    totals = {name: Counts() for name in METRICS}
    for example in examples:
        key, response = (_clusters(doc, prefix, singletons) for doc in (example.reference, example.predicted))
        for name, metric in METRICS.items():
            totals[name] = totals[name].plus(metric(key, response))
    known = totals["mentions"].key > 0
    scores: dict[str, float | None] = {}
    scores["coref_f"] = sum(totals[name].f1 for name in CONLL) / len(CONLL) if known else None
    for name, counts in totals.items():
        for letter, score in (("p", counts.precision), ("r", counts.recall), ("f", counts.f1)):
            scores[f"coref_{name}_{letter}"] = score if known else None
    return scores


def _score(
    own_prefix: str, singletons: bool, examples: Iterable[Example], /, *, prefix: str | None = None, **_: Any
) -> dict[str, float | None]:
    """Score examples. spaCy adds all settings of the component: of these only its prefix counts."""
    return score_coreference(examples, prefix=own_prefix if prefix is None else prefix, singletons=singletons)


def _clusters(doc: Doc, prefix: str, singletons: bool) -> Clusters:
    """The clusters as sets of places in the text, so that docs with other tokens or blanks can be compared."""
    found = [cluster for cluster in clusters_of(doc, prefix) if singletons or len(cluster) > 1]
    if not found:
        return []
    places = places_of(doc)
    return [frozenset((int(places[span.start_char]), int(places[span.end_char])) for span in one) for one in found]
