"""Scores of classes: accuracy and F1."""

import warnings
from collections import Counter
from collections.abc import Iterable
from math import isnan
from statistics import mean
from typing import Any

from spacy.scorer import PRFScore
from spacy.training import Example

from ...errors import UnknownLabelWarning, listed
from ..shared import Scorer


def build_entailment_scorer() -> Scorer:
    """Build spacy-elmo.entailment_scorer.v1: it compares the class of the highest score with the true one."""
    return score_entailment


def score_entailment(examples: Iterable[Example], *, labels: Iterable[str], **_: Any) -> dict[str, Any]:
    """Return accuracy (cats_acc), mean F1 of the classes (cats_macro_f) and the scores of each (cats_f_per_type).

    A doc without an answer, which spaCy's `Scorer.score_cats` can't score, counts as wrong, and so does one with a
    score of NaN, of a training that has failed. An example without a class does not count, nor one of an unknown class,
    of which an UnknownLabelWarning tells. The mean is of the classes that examples have; None if no example counts.
    """
    classes = {label: PRFScore() for label in labels}
    unknown: Counter[str] = Counter()
    number = right = 0
    for example in examples:
        truths = [label for label, value in example.reference.cats.items() if value == 1.0]
        truth = next((label for label in truths if label in classes), None)
        if truth is None:
            unknown.update(truths[:1])
            continue
        number += 1
        scores = {label: example.predicted.cats[label] for label in classes if label in example.predicted.cats}
        is_answered = scores and not any(map(isnan, scores.values()))  # the maximum would be a NaN that comes first
        answer = max(scores, key=lambda label: scores[label]) if is_answered else None
        if answer == truth:
            right += 1
            classes[truth].tp += 1
            continue
        classes[truth].fn += 1
        if answer is not None:
            classes[answer].fp += 1
    if unknown:
        dropped = unknown.total()
        warnings.warn(
            f"{dropped:,} of {number + dropped:,} examples are not scored, because the component does not have their "
            f"classes: {listed(sorted(unknown))}. Expected {listed(list(classes))}.",
            UnknownLabelWarning,
            stacklevel=2,
        )
    if not number:
        return {"cats_acc": None, "cats_macro_f": None, "cats_f_per_type": None}
    return {
        "cats_acc": right / number,
        "cats_macro_f": mean(score.fscore for score in classes.values() if score.tp + score.fn),
        "cats_f_per_type": {label: score.to_dict() for label, score in classes.items()},
    }
