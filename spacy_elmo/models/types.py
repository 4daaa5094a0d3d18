"""Types at the boundary to spaCy and Thinc."""

from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

import numpy as np
from spacy.tokens import Doc, Span
from thinc.api import Model
from thinc.types import Floats2d, Floats3d

# docs -> for each doc the spans that the biLM reads as sentences. They may overlap, but must cover every token
SpanGetter = Callable[[Iterable[Doc]], list[list[Span]]]
# docs -> for each doc its layers, *Shape:* (layers, tokens, width)
BiLMModel = Model[list[Doc], list[Floats3d]]
# docs -> for each doc its vectors, *Shape:* (tokens, width)
Tok2VecModel = Model[list[Doc], list[Floats2d]]


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number that fits into float32. True and False are none."""
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    size: Any = abs(value)
    return bool(size <= float(np.finfo(np.float32).max))


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether this is a whole number. True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def lines_of(doc: Doc, count: int) -> list[Span]:
    """Divide a doc at its first whitespace tokens with a line break, into `count` parts at most. These are in no part.

    spaCy's corpus reader keeps the words of a doc but not its spans; so what divides the parts must be in the text.
    """
    breaks = [token.i for token in doc if token.is_space and "\n" in token.text][: count - 1]
    return [doc[start:end] for start, end in zip([0, *(i + 1 for i in breaks)], [*breaks, len(doc)])]
