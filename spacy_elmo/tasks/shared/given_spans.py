"""An augmenter that gives a component a part of the annotations, because spaCy's corpus reader drops all spans."""

from collections.abc import Callable, Iterator
from functools import partial

from spacy.language import Language
from spacy.training import Example

Augmenter = Callable[[Language, Example], Iterator[Example]]


def build_given_spans(keys: list[str]) -> Augmenter:
    """Build spacy-elmo.GivenSpans.v1: it copies span groups of the annotated doc to the one that is processed.

    So a component is trained or scored on docs whose spans are given, such as predicates.

    keys: names of the span groups. Those that a doc lacks stay missing.
    """
    return partial(_give, keys)


def _give(keys: list[str], nlp: Language, example: Example) -> Iterator[Example]:
    for key in keys:
        if key in example.reference.spans:
            spans = example.get_aligned_spans_y2x(example.reference.spans[key], allow_overlap=True)
            example.predicted.spans[key] = spans
    yield example
