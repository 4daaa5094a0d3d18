"""What the network learns from examples: which tokens are predicates, and the tags of their rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Span
from spacy.training import Example

from .annotations import predicates_of, roles_of
from .rows import Row, rows_of
from .tags import tags_of


class Targets(NamedTuple):
    """The targets of a batch.

    predicates: for each doc, 1 for each token that is a predicate; None if nobody has annotated the doc. *Shape:*
        (tokens,).
    rows: of all predicates whose roles are annotated.
    tags: of each row. *Shape:* (length,).
    """

    predicates: list[NDArray[np.float32] | None]
    rows: list[Row]
    tags: list[NDArray[np.intp]]


def labels_in(example: Example) -> set[str]:
    """Return the labels of all roles in an example. Raises AnnotationError if its annotations are wrong."""
    doc = example.reference
    return {span.label_ for token in predicates_of(doc) or () for span in roles_of(doc, token) or ()}


def targets_of(examples: Sequence[Example], labels: Sequence[str], reach: int) -> Targets:
    """Return the targets of examples, for the tokens of their predicted docs.

    A predicate that is not one token there is left out, and so are roles that are no whole tokens there.

    labels: of the roles. Others are left out.
    reach: number of tokens on each side of a predicate, at most.

    Raises AnnotationError if the annotations of a doc are wrong.
    """
    flags: list[NDArray[np.float32] | None] = []
    roles: list[dict[int, list[Span]]] = []
    for example in examples:
        gold = predicates_of(example.reference)
        found: dict[int, list[Span]] = {}
        flag = np.zeros(len(example.predicted), dtype="f")
        for predicate in gold or ():
            (*spans,) = _aligned(example, [example.reference[predicate : predicate + 1]])
            if [len(span) for span in spans] != [1]:
                continue
            flag[spans[0].start] = 1
            parts = roles_of(example.reference, predicate)
            if parts is not None:
                found[spans[0].start] = _aligned(example, parts)
        flags.append(None if gold is None else flag)
        roles.append(found)
    rows = rows_of([example.predicted for example in examples], [sorted(found) for found in roles], reach)
    tags = []
    for row in rows:
        places = ((s.start - row.start, s.end - row.start, s.label_) for s in roles[row.doc][row.predicate])
        tags.append(tags_of(places, row.end - row.start, labels))
    return Targets(flags, rows, tags)


def _aligned(example: Example, spans: Sequence[Span]) -> list[Span]:
    """Return the same spans in the predicted doc."""
    aligned: list[Span] = example.get_aligned_spans_y2x(spans, allow_overlap=True)
    return aligned
