"""Annotations as training targets, and the loss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from spacy.training import Example

from .annotations import clusters_of
from .parts import Array
from .places import places_of, tokens_at
from .scoring import Scores


class Targets(NamedTuple):
    """What the scores of a doc should say.

    mentions: 1 for spans that are mentions, else 0. *Shape:* (spans,)
    corefer: 1 for antecedents of the same cluster, else 0. *Shape:* (kept, k)
    """

    mentions: Array
    corefer: Array


def gold_mentions(example: Example, prefix: str) -> dict[tuple[int, int], int]:
    """Return the mentions of a reference as spans of the predicted doc, with the numbers of their clusters.

    A mention that does not begin and end where tokens of the predicted doc do is left out. The texts may differ in
    whitespace.
    """
    clusters = clusters_of(example.reference, prefix)
    if not clusters:
        return {}
    places = places_of(example.reference)
    starts, ends = tokens_at(example.predicted)
    found = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            start, end = starts.get(int(places[mention.start_char])), ends.get(int(places[mention.end_char]))
            if start is not None and end is not None and start < end:
                found[start, end] = number
    return found


def targets_of(scores: Scores, gold: dict[tuple[int, int], int]) -> Targets:
    """Return what scores should say. gold: bounds of the mentions, with the numbers of their clusters."""
    clusters: Array = np.array([gold.get((start, end), -1) for start, end in scores.spans.tolist()], dtype=np.int64)
    kept = clusters[scores.kept]
    others = np.where(scores.antecedents < 0, -1, kept[scores.antecedents]) if len(kept) else scores.antecedents
    corefer = (others >= 0) & (others == kept[:, None])
    return Targets((clusters >= 0).astype(np.float32), corefer.astype(np.float32))


def loss_of(scores: Scores, targets: Targets) -> tuple[float, Scores]:
    """Return the loss of a doc's scores and its gradient.

    It is the negative marginal log-likelihood of the right antecedents of each kept span, the dummy antecedent of
    score 0 if there is none (Lee et al. 2017, section 2), and the cross-entropy of the mention scores. Both are sums
    over the spans, divided by the number of kept spans.
    """
    count = max(1, len(scores.kept))
    mentions = scores.mention_scores.astype(np.float64)
    # log(1 + exp(x)) - x * y, which does not overflow
    losses = np.logaddexp(0, mentions) - mentions * targets.mentions
    d_mentions = np.exp(-np.logaddexp(0, -mentions)) - targets.mentions

    pairs = np.pad(scores.pair_scores.astype(np.float64), ((0, 0), (1, 0)))
    right = np.pad(targets.corefer, ((0, 0), (1, 0)))
    right[:, 0] = ~right[:, 1:].any(axis=1)
    allowed = np.where(right > 0, pairs, -np.inf)
    total, marginal = (np.logaddexp.reduce(one, axis=1, initial=-np.inf) for one in (pairs, allowed))
    d_pairs = np.exp(pairs - total[:, None]) - np.exp(allowed - marginal[:, None])

    gradient = scores._replace(
        mention_scores=(d_mentions / count).astype(np.float32),
        pair_scores=(d_pairs[:, 1:] / count).astype(np.float32),
    )
    return float((losses.sum() + (total - marginal).sum()) / count), gradient
