"""Docs to the rows that the biLM reads, and the rows' layers back to docs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc, Span
from thinc.types import Floats3d

from ..errors import Errors, SettingsError
from ..errors import shown as short
from .types import SpanGetter

RowLayers = list[npt.NDArray[np.float32]]


class Row(NamedTuple):
    """What the biLM reads at once. words: without whitespace tokens. doc: its number in the batch.

    tokens: the doc's tokens whose vectors come from this row; places: where in words they stand. Both (n,).
    """

    doc: int
    words: list[str]
    tokens: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


def rows_of(docs: Sequence[Doc], get_spans: SpanGetter, *, once: bool = False) -> list[Row]:
    """The rows of all docs, in order. Raises SettingsError where a getter's spans do not fit the docs.

    once: each token is read once, in the doc's order: a span begins where the one before it ended, if they overlap.
    """
    spans_of_docs = get_spans(docs)
    if not isinstance(spans_of_docs, Iterable) or len(spans_of_docs := list(spans_of_docs)) != len(docs):
        got = len(spans_of_docs) if isinstance(spans_of_docs, list) else short(spans_of_docs)
        raise SettingsError(Errors.SPANS_DOCS.format(got=got, expected=len(docs)))
    rows = []
    for number, (doc, spans) in enumerate(zip(docs, spans_of_docs)):
        if not isinstance(spans, (list, tuple)) or not all(isinstance(span, Span) for span in spans):
            raise SettingsError(Errors.SPANS_KIND.format(got=short(spans)))
        for span in spans:
            if span.doc is not doc:
                raise SettingsError(Errors.SPANS_OTHER_DOC.format(got=span.text[:50]))
        if once:
            spans = _without_overlap(doc, spans)
        shown = doc.to_array(IS_SPACE) == 0
        if len(spans) == 1 and len(spans[0]) == len(doc):
            indices = np.flatnonzero(shown)
            if len(indices):
                words = [token.text for token in doc if not token.is_space]
                rows.append(Row(number, words, indices, np.arange(len(indices))))
            continue
        owners = _owners(doc, spans, shown)
        for k, span in enumerate(spans):
            indices = np.arange(span.start, span.end)[shown[span.start : span.end]]
            places = np.flatnonzero(owners[indices] == k)
            if len(places):
                rows.append(Row(number, [doc[int(i)].text for i in indices], indices[places], places))
    return rows


def _without_overlap(doc: Doc, spans: Sequence[Span]) -> list[Span]:
    cut, read = [], 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        cut.append(doc[max(span.start, read) : max(span.end, read)])
        read = max(span.end, read)
    return cut


def _owners(doc: Doc, spans: Sequence[Span], shown: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """For each word the span in which it stands furthest from an edge (the first of equals). *Shape:* (tokens,).

    shown: *Shape:* (tokens,), false at whitespace, which neither counts nor needs a span.
    """
    owners = np.full(len(doc), -1, np.int64)
    depths = np.full(len(doc), -1, np.int64)
    for k, span in enumerate(spans):
        words = np.arange(span.start, span.end)[shown[span.start : span.end]]
        inside = np.arange(len(words))
        depth = np.minimum(inside, inside[::-1])
        better = depth > depths[words]
        owners[words[better]] = k
        depths[words[better]] = depth[better]
    left_out = np.flatnonzero(shown & (owners < 0))
    if len(left_out):
        raise SettingsError(Errors.SPANS_GAP.format(token=doc[int(left_out[0])].text[:50], i=int(left_out[0])))
    return owners


def to_docs(
    docs: Sequence[Doc], rows: Sequence[Row], row_layers: Sequence[npt.NDArray[np.float32]], layers: int, width: int
) -> list[Floats3d]:
    """Each doc's layers, *Shape:* (layers, tokens, width), zeros for whitespace tokens; row_layers: one item a row."""
    results: list[npt.NDArray[np.float32] | None] = [None] * len(docs)
    for row, values in zip(rows, row_layers):
        found = results[row.doc]
        if found is None and len(row.tokens) == len(docs[row.doc]):  # one row is the whole doc
            own = values.flags.writeable and values.base is None  # neither a cache's nor a part of a batch's
            results[row.doc] = values if own else values.copy()
            continue
        if found is None:
            found = results[row.doc] = np.zeros((layers, len(docs[row.doc]), width), np.float32)
        found[:, row.tokens] = values[:, row.places]
    whole = [
        np.zeros((layers, len(doc), width), np.float32) if found is None else found for doc, found in zip(docs, results)
    ]
    return whole  # type: ignore[return-value]  # thinc's Floats3d is a protocol of numpy and cupy arrays


def to_rows(rows: Sequence[Row], doc_layers: Sequence[Floats3d]) -> list[npt.NDArray[np.float32]]:
    """The transpose of to_docs, for gradients. *Shape:* (layers, words, width) each."""
    results = []
    for row in rows:
        values = np.asarray(doc_layers[row.doc])
        result = np.zeros((values.shape[0], len(row.words), values.shape[2]), np.float32)
        result[:, row.places] = values[:, row.tokens]
        results.append(result)
    return results
