"""Entailment: whether a hypothesis follows from a premise, contradicts it, or neither."""

from collections.abc import Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc

from ..shared import make_doc

__all__ = ["make_pair", "make_pairs"]

KEYS = ("premise", "hypothesis")  # of doc.spans


def make_pair(nlp: Language, premise: str, hypothesis: str) -> Doc:
    """Return a doc of two texts, with `doc.spans["premise"]` and `doc.spans["hypothesis"]`.

    nlp: pipeline, whose tokenizer is used. Its components do not run: `nlp(make_pair(nlp, ...))` does both.
    premise: the text that is taken as true. Its line breaks become blanks.
    hypothesis: the text that may follow from it.

    Raises AnnotationError if one of them is no string.
    """
    return make_doc(nlp, (premise, hypothesis), KEYS)


def make_pairs(nlp: Language, pairs: Iterable[tuple[str, str]]) -> Iterator[Doc]:
    """Return a doc for each pair of premise and hypothesis: for `nlp.pipe(make_pairs(nlp, pairs))`.

    Raises AnnotationError if one of them is no string.
    """
    for premise, hypothesis in pairs:
        yield make_pair(nlp, premise, hypothesis)
