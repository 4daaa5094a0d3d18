"""Pairs of texts as docs, and the pair in a doc."""

from collections.abc import Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..shared import make_doc, parts_of

KEYS = ("premise", "hypothesis")


def make_pair(nlp: Language, premise: str, hypothesis: str) -> Doc:
    """Return a doc of two texts, with `doc.spans["premise"]` and `doc.spans["hypothesis"]`.

    nlp: pipeline, whose tokenizer is used. Its components do not run: `nlp(make_pair(nlp, ...))` does both.
    premise: the text that is taken as true. Its line breaks become blanks.
    hypothesis: the text that may follow from it.

    Raises AnnotationError if one of them is no string.
    """
    return make_doc(nlp, (premise, hypothesis), KEYS)


def make_pairs(nlp: Language, pairs: Iterable[tuple[str, str]]) -> Iterator[Doc]:
    """Return a doc for each pair of texts, one after the other: for `nlp.pipe(make_pairs(nlp, pairs))`.

    nlp: pipeline, whose tokenizer is used.
    pairs: premise and hypothesis of each pair.

    Raises AnnotationError if one of them is no string.
    """
    for premise, hypothesis in pairs:
        yield make_pair(nlp, premise, hypothesis)


def pair_of(doc: Doc) -> tuple[Span, Span] | None:
    """Return premise and hypothesis of a doc: its spans, or else its first line and the other lines.

    Returns None if the doc has no words, or one of the two has none.

    Raises AnnotationError if the doc has no such pair.
    """
    parts = parts_of(doc, KEYS)
    return None if parts is None else (parts[0], parts[1])
