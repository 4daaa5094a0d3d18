"""Clusters from the scores of a doc's mentions."""

from __future__ import annotations

from .scoring import Scores


def clusters_from(scores: Scores, *, singletons: bool) -> list[list[tuple[int, int]]]:
    """Return the clusters: each mention joins the one of its best antecedent if that has a score above 0.

    scores: in prediction.
    singletons: whether a mention with which no other one corefers is a cluster.

    Returns for each cluster the bounds of its mentions; clusters and mentions are in the order of the text.
    """
    clusters: list[list[tuple[int, int]]] = []
    owners: list[list[tuple[int, int]]] = []
    for (start, end), place, score in zip(
        scores.spans.tolist(), scores.antecedents[:, 0].tolist(), scores.pair_scores[:, 0].tolist()
    ):
        if score > 0:
            cluster = owners[place]
        else:
            cluster = []
            clusters.append(cluster)
        cluster.append((start, end))
        owners.append(cluster)
    return [cluster for cluster in clusters if singletons or len(cluster) > 1]
