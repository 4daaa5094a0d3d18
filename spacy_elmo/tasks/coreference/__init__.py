"""Coreference: which spans of a doc speak of the same thing. Clusters are `doc.spans["coref_clusters_1"]` and so on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span

from ...errors import AnnotationError, shown

__all__ = ["annotate", "clusters_of"]

PREFIX = "coref_clusters"


def clusters_of(doc: Doc, prefix: str = PREFIX) -> list[list[Span]]:
    """Return the clusters of a doc, its span groups prefix_1, prefix_2 ...; mentions are in the order of the text.

    Raises AnnotationError if a group's name has no number, or if a span is in two clusters.
    """
    numbers = {}
    for key in _keys(doc, prefix):
        number = key.removeprefix(f"{prefix}_")
        if not re.fullmatch("[0-9]+", number):
            raise AnnotationError(f"the span group {key} has no number. Rename it: {prefix}_1, {prefix}_2 ...")
        numbers[key] = int(number)
    groups = {key: list(filter(len, doc.spans[key])) for key in sorted(numbers, key=lambda key: numbers[key])}
    _check_apart(groups)
    clusters = ({(span.start, span.end): span for span in spans} for spans in groups.values() if spans)
    return [[mentions[bounds] for bounds in sorted(mentions)] for mentions in clusters]


def head_of(span: Span, prefix: str = PREFIX) -> Span | None:
    """Return the first mention of the cluster that a span is a mention of; None if it is none."""
    for cluster in clusters_of(span.doc, prefix):
        if any((mention.start, mention.end) == (span.start, span.end) for mention in cluster):
            return cluster[0]
    return None


def annotate(doc: Doc, clusters: Iterable[Iterable[Span | tuple[int, int]]], prefix: str = PREFIX) -> None:
    """Write clusters to a doc, in the place of those that it has.

    clusters: the mentions of each: spans of the doc, or pairs of the first token and the token after the last one.

    Raises AnnotationError if a mention is no such span or pair, or is in two clusters. Then the doc stays as it was.
    """
    groups = {}
    for number, cluster in enumerate(clusters, 1):
        groups[f"{prefix}_{number}"] = [_span(doc, mention, number) for mention in cluster]
    _check_apart(groups)
    for key in _keys(doc, prefix):
        del doc.spans[key]
    for key, spans in groups.items():
        doc.spans[key] = spans


def _span(doc: Doc, mention: Any, number: int) -> Span:
    if isinstance(mention, Span) and mention.doc is doc:
        return doc[mention.start : mention.end]
    is_pair = isinstance(mention, (tuple, list)) and all(isinstance(place, Integral) for place in mention)
    if not is_pair or len(mention) != 2 or not 0 <= mention[0] < mention[1] <= len(doc):
        raise AnnotationError(
            f"cluster {number} has the mention {shown(mention)}. Expected a span of this doc, or a pair of the numbers "
            f"of its first token and of the one after its last, 0 to {len(doc)}: [[(0, 1), (6, 7)]] is one cluster of "
            "two mentions."
        )
    return doc[int(mention[0]) : int(mention[1])]


def _check_apart(groups: dict[str, list[Span]]) -> None:
    owner: dict[tuple[int, int], str] = {}
    for key, spans in groups.items():
        for span in spans:
            first = owner.setdefault((span.start, span.end), key)
            if first != key:
                raise AnnotationError(
                    f"the span {span.text!r} is in two clusters, {first} and {key}. Leave it out of one of them."
                )


def _keys(doc: Doc, prefix: str) -> list[str]:
    return [key for key in doc.spans if key.startswith(f"{prefix}_")]


def places_of(doc: Doc) -> NDArray[Any]:
    """Return how many characters that are no whitespace come before each character of a doc's text, and in all."""
    return np.cumsum([0, *(not character.isspace() for character in doc.text)])
