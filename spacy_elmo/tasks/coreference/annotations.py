"""Where the clusters of a doc are: `doc.spans["coref_clusters_1"]` and so on, and the extension attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral

from spacy.tokens import Doc, Span

from ...errors import AnnotationError, shown
from ..shared import set_getter

PREFIX = "coref_clusters"
HEAD = "coref_head"


def clusters_of(doc: Doc, prefix: str = PREFIX) -> list[list[Span]]:
    """Return the clusters of a doc in the order of their numbers; the mentions of each in the order of the text.

    doc: the doc.
    prefix: the groups are named prefix_1, prefix_2 ...

    Raises AnnotationError if a group's name has no number, or if a span is in two clusters.
    """
    clusters = []
    owner: dict[tuple[int, int], str] = {}
    for key in sorted(_keys(doc, prefix), key=lambda key: _number(key, prefix)):
        mentions = {(span.start, span.end): span for span in doc.spans[key] if len(span)}
        for bounds, span in mentions.items():
            if owner.setdefault(bounds, key) != key:
                raise AnnotationError(
                    f"the span {span.text!r} is in two clusters, {owner[bounds]} and {key}. Expected each mention "
                    "in one cluster."
                )
        if mentions:
            clusters.append([mentions[bounds] for bounds in sorted(mentions)])
    return clusters


def annotate(doc: Doc, clusters: Iterable[Iterable[Span | tuple[int, int]]], prefix: str = PREFIX) -> None:
    """Write clusters to a doc, in the place of those that it has.

    clusters: the mentions of each: spans of the doc, or pairs of the first token and the token after the last one.
    prefix: as for `clusters_of`.

    Raises AnnotationError if a mention is no such span or pair, or is in two clusters. Then the doc stays as it was.
    """
    spans = _spans(doc, clusters, prefix)
    for key in _keys(doc, prefix):
        del doc.spans[key]
    for key, mentions in spans.items():
        doc.spans[key] = mentions


def head_name(prefix: str) -> str:
    """Return the name of the attribute of spans: `coref_head`, or `chains_head` for another prefix such as chains."""
    return HEAD if prefix == PREFIX else f"{prefix}_head"


def register(prefix: str) -> None:
    """Set the extensions `doc._.coref_clusters` (named as the prefix) and `span._.coref_head`, unless they are set.

    The second is named by `head_name`, so components with other prefixes in one process do not get in each other's way.

    Raises SettingsError if something else has set an extension of one of these names, or a component whose prefix is
    another one: `coref` and `coref_clusters` both need `span._.coref_head`.
    """
    set_getter(Doc, prefix, clusters_of, prefix=prefix)
    set_getter(Span, head_name(prefix), head_of, prefix=prefix)


def head_of(span: Span, prefix: str = PREFIX) -> Span | None:
    """Return the first mention of the cluster that a span is a mention of; None if it is none."""
    for cluster in clusters_of(span.doc, prefix):
        if any((mention.start, mention.end) == (span.start, span.end) for mention in cluster):
            return cluster[0]
    return None


def _spans(doc: Doc, clusters: object, prefix: str) -> dict[str, list[Span]]:
    """Return the mentions of each cluster under the key of its span group. Raises AnnotationError as `annotate`."""
    if not isinstance(clusters, Iterable):
        raise AnnotationError(
            f"the clusters are {shown(clusters)}. Expected a list of clusters, each of them a list of mentions: "
            "[[(0, 1), (6, 7)]] is one cluster of two mentions."
        )
    found = {}
    owner: dict[tuple[int, int], str] = {}
    for number, cluster in enumerate(clusters, 1):
        if not isinstance(cluster, Iterable):
            raise AnnotationError(
                f"cluster {number} is {shown(cluster)}. Expected a list of mentions: [[(0, 1), (6, 7)]] is one "
                "cluster of two mentions."
            )
        key = f"{prefix}_{number}"
        found[key] = [_span(doc, mention, number) for mention in cluster]
        for span in found[key]:
            first = owner.setdefault((span.start, span.end), key)
            if first != key:
                raise AnnotationError(
                    f"the span {span.text!r} is in two clusters, {first} and {key}. Expected each mention in one "
                    "cluster."
                )
    return found


def _span(doc: Doc, mention: object, number: int) -> Span:
    """Return a mention as a span of a doc. number: of its cluster, for messages."""
    if isinstance(mention, Span):
        if mention.doc is not doc:
            raise AnnotationError(
                f"cluster {number} has the mention {shown(mention.text)}, which is a span of another doc. "
                "Expected spans of the doc that is annotated: give doc[first:after] of it, or the pair (first, "
                "after)."
            )
        bounds = mention.start, mention.end
    else:
        pair = mention if isinstance(mention, (tuple, list)) and len(mention) == 2 else ()
        if not pair or not all(isinstance(place, Integral) for place in pair):
            raise AnnotationError(
                f"cluster {number} has the mention {shown(mention)}. Expected a span of the doc, or a pair of the "
                "number of its first token and that of the token after its last one: [[(0, 1), (6, 7)]] is one "
                "cluster of two such mentions."
            )
        bounds = int(pair[0]), int(pair[1])
    if not 0 <= bounds[0] < bounds[1] <= len(doc):
        raise AnnotationError(
            f"cluster {number} has the mention {shown(bounds)}, but the doc has {len(doc)} tokens. Expected a "
            f"pair (first, after) with 0 <= first < after <= {len(doc)}: the number of its first token and that "
            "of the token after its last one."
        )
    return doc[bounds[0] : bounds[1]]


def _keys(doc: Doc, prefix: str) -> list[str]:
    return [key for key in doc.spans if key.startswith(f"{prefix}_")]


def _number(key: str, prefix: str) -> int:
    number = key.removeprefix(f"{prefix}_")
    if not re.fullmatch("[0-9]+", number):
        raise AnnotationError(f"the span group {key} has no number. Expected {prefix}_1, {prefix}_2 ...: rename it.")
    return int(number)
