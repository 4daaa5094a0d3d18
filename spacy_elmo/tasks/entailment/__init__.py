"""Entailment: whether a hypothesis follows from a premise, contradicts it, or neither."""

from collections.abc import Iterable, Iterator

from spacy.language import Language
from spacy.tokens import Doc

from ..shared import make_doc

__all__ = ["make_pair", "make_pairs"]

KEYS = ("premise", "hypothesis")  # of doc.spans


def make_pair(nlp: Language, premise: str, hypothesis: str) -> Doc:
    """Return a doc of two texts, with `doc.spans["premise"]` and `doc.spans["hypothesis"]`.

    The components of nlp do not run: `nlp(make_pair(nlp, ...))` does both. Line breaks of the premise become blanks.
    Raises AnnotationError if a text is no string.
    """
    return make_doc(nlp, (premise, hypothesis), KEYS)


def make_pairs(nlp: Language, pairs: Iterable[tuple[str, str]]) -> Iterator[Doc]:
    """Return a doc for each pair of premise and hypothesis: for `nlp.pipe(make_pairs(nlp, pairs))`."""
    return (make_pair(nlp, premise, hypothesis) for premise, hypothesis in pairs)
