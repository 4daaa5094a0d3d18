"""Types at the boundary to spaCy and Thinc."""

from collections.abc import Callable, Iterable

from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

# docs -> for each doc the spans that the biLM reads as sentences. They may overlap, but must cover every token
SpanGetter = Callable[[Iterable[Doc]], list[list[Span]]]
# docs -> for each doc its layers, *Shape:* (layers, tokens, width)
BiLMModel = Model[list[Doc], list[Floats3d]]
# docs -> for each doc its vectors, *Shape:* (tokens, width)
Tok2VecModel = Model[list[Doc], list[Floats2d]]
