"""The scorer `spacy-elmo.coreference_scorer.v1`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spacy.tokens import Doc
from spacy.training import Example

from .annotations import PREFIX, clusters_of
from .metrics import Clusters, Counts, b_cubed, ceaf, lea, mentions, muc
from .places import places_of

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
