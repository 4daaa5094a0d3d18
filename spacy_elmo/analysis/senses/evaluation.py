"""Finds the senses of a test set by the nearest sense, and scores them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..rows import Array
from .corpus import Instance
from .inventory import FirstSenses, SenseInventory
from .scores import SenseScore, joined


class SenseResult(NamedTuple):
    """The scores of a test set.

    first_sense: the first sense for all instances.
    rows: the nearest sense, of each layer and then of their mean. Lemmas that the training corpus does not have get
        their first sense.
    unseen: number of these instances.
    """

    first_sense: SenseScore
    rows: list[SenseScore]
    unseen: int


def evaluate(
    inventory: SenseInventory, first_senses: FirstSenses, instances: Iterable[tuple[Instance, Array]], rows: int
) -> SenseResult:
    """Score a test set.

    inventory: of the training corpus.
    first_senses: to compare with, and for lemmas that are not in the inventory.
    instances: of the test set, with their vectors, *Shape:* (rows, width).
    rows: number of layers and one for their mean.
    """
    first_sense, scores, unseen = SenseScore(), [SenseScore()] * rows, 0
    for instance, vectors in instances:
        first = first_senses.of(instance.lemma)
        known = instance.lemma in inventory
        answers = inventory.nearest(instance.lemma, vectors) if known else [first] * rows
        unseen += not known
        first_sense = first_sense.plus(first, instance.senses)
        scores = [score.plus(answer, instance.senses) for score, answer in zip(scores, answers)]
    return SenseResult(first_sense, scores, unseen)


def all_together(results: list[SenseResult]) -> SenseResult:
    """Return the result of several test sets as one."""
    rows = [joined(list(scores)) for scores in zip(*(result.rows for result in results))]
    return SenseResult(joined([result.first_sense for result in results]), rows, sum(r.unseen for r in results))
