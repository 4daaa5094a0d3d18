"""Scores of classes: accuracy and F1."""

from collections.abc import Iterable
from typing import Any

from spacy.scorer import PRFScore
from spacy.training import Example

from ..shared import Scorer


def build_entailment_scorer() -> Scorer:
    """Build spacy-elmo.entailment_scorer.v1: it compares the class of the highest score with the true one."""
    return score_entailment


def score_entailment(examples: Iterable[Example], *, labels: Iterable[str], **_: Any) -> dict[str, Any]:
    """Return accuracy (cats_acc), mean F1 of the classes (cats_macro_f) and the scores of each (cats_f_per_type).

    A doc without an answer, which spaCy's `Scorer.score_cats` can't score, counts as wrong. An example without a class
    does not count. If no example counts, the scores are None.
    """
    classes = {label: PRFScore() for label in labels}
    number = right = 0
    for example in examples:
        truth = next((label for label in classes if example.reference.cats.get(label) == 1.0), None)
        if truth is None:
            continue
        number += 1
        scores = {label: example.predicted.cats[label] for label in classes if label in example.predicted.cats}
        answer = max(scores, key=lambda label: scores[label]) if scores else None
        if answer == truth:
            right += 1
            classes[truth].tp += 1
            continue
        classes[truth].fn += 1
        if answer is not None:
            classes[answer].fp += 1
    if not number:
        return {"cats_acc": None, "cats_macro_f": None, "cats_f_per_type": None}
    return {
        "cats_acc": right / number,
        "cats_macro_f": sum(score.fscore for score in classes.values()) / len(classes),
        "cats_f_per_type": {label: score.to_dict() for label, score in classes.items()},
    }
