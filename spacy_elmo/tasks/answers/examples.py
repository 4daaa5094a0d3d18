"""From the right answers of a doc to what the network has to learn."""

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from spacy.training import Example

from ...errors import AnnotationError, Errors, shown
from .questions import ANSWER, question_of

Targets = npt.NDArray[np.float32]


def check_answers(doc: Doc) -> bool:
    """Return whether a doc has right answers to learn from.

    Raises AnnotationError if it has the span group without spans, or an answer that is not in the context.
    """
    if ANSWER not in doc.spans:
        return False
    parts = question_of(doc)
    spans = list(doc.spans[ANSWER])
    if not spans:
        raise AnnotationError(Errors.ANSWERS_NONE.format(text=shown(doc.text)))
    for span in spans:
        if parts is None or not len(span) or not parts.context.start <= span.start <= span.end <= parts.context.end:
            raise AnnotationError(Errors.ANSWERS_OUTSIDE.format(got=shown(span.text), text=shown(doc.text)))
    return True


def targets_of(example: Example) -> Targets | None:
    """Return which tokens of the context are starts and ends of right answers.

    example: the right answers are those of its reference; the context is that of its predicted doc.

    Returns *Shape:* (context tokens, 2), 1.0 at starts and ends; None if there is nothing to learn: the reference has
    no answers, or none that begins and ends where tokens of the predicted doc do.

    Raises AnnotationError if the answers are wrong (see `check_answers`), or the predicted doc has no context.
    """
    if not check_answers(example.reference):
        return None
    parts = question_of(example.predicted)
    if parts is None:
        raise AnnotationError(Errors.ANSWERS_NO_CONTEXT.format(text=shown(example.predicted.text)))
    targets = np.zeros((len(parts.context), 2), np.float32)
    spans = example.get_aligned_spans_y2x(list(example.reference.spans[ANSWER]), allow_overlap=True)
    for span in spans:
        start, last = span.start - parts.context.start, span.end - 1 - parts.context.start
        if 0 <= start <= last < len(targets):
            targets[start, 0] = targets[last, 1] = 1.0
    return targets if targets.any() else None
