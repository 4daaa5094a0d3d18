"""Types at spaCy's and Thinc's boundary."""

from collections.abc import Callable, Iterable

from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats3d

# for each doc the spans that the biLM reads one by one; they may overlap, but must cover every token
SpanGetter = Callable[[Iterable[Doc]], list[list[Span]]]
# docs -> (layers, tokens, width) each; thinc reads typing.List alone
BiLMModel = Model[list[Doc], list[Floats3d]]
