"""Scores semantic roles as the script of CoNLL-2005 (srl-eval.pl) does: precision, recall and F1 of whole arguments."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from spacy.scorer import PRFScore
from spacy.tokens import Span
from spacy.training import Example

from ..shared import Scorer, aligned
from . import VERB, predicates_of, roles_of, was_found

# label, and start and end of each piece
Argument = tuple[str, tuple[tuple[int, int], ...]]


def build_roles_scorer() -> Scorer:
    """Build spacy-elmo.roles_scorer.v1: see `score_roles`."""
    return score_roles


def score_roles(examples: Iterable[Example], **_: Any) -> dict[str, Any]:
    """Return the scores of predicted roles.

    An argument is right if its label and all its pieces are. Docs without `doc.spans["predicates"]` in the reference
    are not scored, and neither are the roles of a predicate without `doc.spans["roles:i"]`. If the component found the
    predicates itself, the arguments of a predicate that it missed are missing, and those of a predicate that is none
    are wrong. (srl-eval.pl skips the latter.)

    Returns `roles_p`, `roles_r`, `roles_f`, `roles_per_type`; `roles_given`, the share of the docs whose predicates
    were given: 1.0 means that all were, as in the literature; `predicates_p`, `predicates_r`, `predicates_f` of the
    predicates that were found. As in spaCy's scores, what has nothing to count is None: no argument or no predicate on
    either side, no predicates that were found. All are None if no reference is annotated.

    Raises AnnotationError if the annotations of a doc are wrong.
    """
    total, found = PRFScore(), PRFScore()
    by_label: defaultdict[str, PRFScore] = defaultdict(PRFScore)
    docs = given = 0
    for example in examples:
        gold = predicates_of(example.reference)
        if gold is None:
            continue
        docs += 1
        predicted = _predicted(example)
        if was_found(example.predicted):
            found.score_set(set(predicted), set(gold))
        else:
            given += 1
        for predicate in sorted({*gold, *predicted}):
            spans = roles_of(example.reference, predicate) if predicate in gold else []
            if spans is None:
                continue
            sides = arguments_of(predicted.get(predicate, ())), arguments_of(spans)
            total.score_set(*sides)
            for label in {label for side in sides for label, _ in side}:
                by_label[label].score_set(*({one for one in side if one[0] == label} for side in sides))
    per_type = {label: score.to_dict() for label, score in sorted(by_label.items())}
    return {
        **_figures("roles", total),
        "roles_per_type": per_type or None,
        "roles_given": given / docs if docs else None,
        **_figures("predicates", found),
    }


def _figures(name: str, score: PRFScore) -> dict[str, float | None]:
    values = {"p": score.precision, "r": score.recall, "f": score.fscore}
    return {f"{name}_{letter}": value if len(score) else None for letter, value in values.items()}


def _predicted(example: Example) -> dict[int, list[Span]]:
    """Return the predicted roles as spans of the reference, by predicate: below 0 if it is not one token there."""
    doc = example.predicted
    roles: dict[int, list[Span]] = {}
    for number, predicate in enumerate(predicates_of(doc) or ()):
        places = aligned(example, [doc[predicate : predicate + 1]], to_reference=True)
        place = places[0].start if [len(span) for span in places] == [1] else -1 - number
        roles[place] = aligned(example, roles_of(doc, predicate) or [], to_reference=True)
    return roles


def arguments_of(spans: Iterable[Span]) -> set[Argument]:
    """Return the arguments of a predicate, whose roles are in the order of the text, as srl-eval.pl counts them.

    C-X is a piece of the X before it; without one, it is an X itself. V is no argument.
    """
    arguments: list[Argument] = []
    latest: dict[str, int] = {}
    for span in spans:
        label = span.label_.removeprefix("C-")
        piece = (span.start, span.end)
        if label != span.label_ and label in latest:
            pieces = arguments[latest[label]][1]
            arguments[latest[label]] = label, (*pieces, piece)
        else:
            latest[label] = len(arguments)
            arguments.append((label, (piece,)))
    return {argument for argument in arguments if argument[0] != VERB}
