"""From docs to the rows that the biLM reads, and from the layers of the rows to those of the docs."""

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
    """A span as the biLM reads it, and which of its vectors are used.

    doc: index of the doc in its batch.
    words: the span's words, without whitespace tokens.
    tokens: *Shape:* (n,), indices in the doc of the tokens whose vectors come from this row.
    places: *Shape:* (n,), indices of the same tokens in `words`.
    """

    doc: int
    words: list[str]
    tokens: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]


def rows_of(docs: Sequence[Doc], get_spans: SpanGetter, *, once: bool = False) -> list[Row]:
    """Return the rows of all docs, in the order of the docs.

    If spans overlap, a token's vectors come from the span in which it is farthest from an edge.

    docs: the docs.
    get_spans: span getter that splits them.
    once: whether each token is read only once, in the order of the doc. Then overlapping spans are cut: a span starts
        where the previous one ended.

    Raises SettingsError if the spans do not belong to the docs, or do not cover all their words.
    """
    spans_of_docs = get_spans(docs)
    if not isinstance(spans_of_docs, Iterable) or len(spans_of_docs := list(spans_of_docs)) != len(docs):
        got = len(spans_of_docs) if isinstance(spans_of_docs, list) else short(spans_of_docs)
        raise SettingsError(Errors.SPANS_DOCS.format(got=got, expected=len(docs)))
    rows = []
    for doc_index, (doc, spans) in enumerate(zip(docs, spans_of_docs)):
        if not isinstance(spans, (list, tuple)) or not all(isinstance(span, Span) for span in spans):
            raise SettingsError(Errors.SPANS_KIND.format(got=short(spans)))
        for span in spans:
            if span.doc is not doc:
                raise SettingsError(Errors.SPANS_OTHER_DOC.format(got=span.text[:50]))
        if once:
            spans = _without_overlap(doc, spans)
        is_word = doc.to_array(IS_SPACE) == 0
        if len(spans) == 1 and len(spans[0]) == len(doc):
            indices = np.flatnonzero(is_word)
            if len(indices):
                words = [token.text for token in doc if not token.is_space]
                rows.append(Row(doc_index, words, indices, np.arange(len(indices))))
            continue
        best_spans = _best_spans(doc, spans, is_word)
        for k, span in enumerate(spans):
            indices = np.arange(span.start, span.end)[is_word[span.start : span.end]]
            places = np.flatnonzero(best_spans[indices] == k)
            if len(places):
                rows.append(Row(doc_index, [doc[int(i)].text for i in indices], indices[places], places))
    return rows


def _without_overlap(doc: Doc, spans: Sequence[Span]) -> list[Span]:
    cut, read = [], 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        cut.append(doc[max(span.start, read) : max(span.end, read)])
        read = max(span.end, read)
    return cut


def _best_spans(doc: Doc, spans: Sequence[Span], is_word: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return for each word the index of the span in which it is farthest from an edge, *Shape:* (tokens,).

    If two spans are equal, it is the first. At whitespace it is -1.

    is_word: *Shape:* (tokens,), false at whitespace tokens.

    Raises SettingsError if a word is in no span.
    """
    best_spans = np.full(len(doc), -1, np.int64)
    distances = np.full(len(doc), -1, np.int64)
    for k, span in enumerate(spans):
        words = np.arange(span.start, span.end)[is_word[span.start : span.end]]
        from_start = np.arange(len(words))
        from_edge = np.minimum(from_start, from_start[::-1])
        better = from_edge > distances[words]
        best_spans[words[better]] = k
        distances[words[better]] = from_edge[better]
    left_out = np.flatnonzero(is_word & (best_spans < 0))
    if len(left_out):
        raise SettingsError(Errors.SPANS_GAP.format(token=doc[int(left_out[0])].text[:50], i=int(left_out[0])))
    return best_spans


def to_docs(
    docs: Sequence[Doc], rows: Sequence[Row], row_layers: Sequence[npt.NDArray[np.float32]], layers: int, width: int
) -> list[Floats3d]:
    """Return the layers of each doc, *Shape:* (layers, tokens, width), with zeros for whitespace tokens.

    docs: the docs.
    rows: what `rows_of` returned for them.
    row_layers: *Shape:* (layers, words, width) for each row.
    layers: number of layers.
    width: width of the layers.
    """
    partial: list[npt.NDArray[np.float32] | None] = [None] * len(docs)
    for row, values in zip(rows, row_layers):
        result = partial[row.doc]
        if result is None and len(row.tokens) == len(docs[row.doc]):  # the doc consists of this row
            shared = not values.flags.writeable or values.base is not None  # with a cache, or with a batch
            partial[row.doc] = values.copy() if shared else values
            continue
        if result is None:
            result = partial[row.doc] = np.zeros((layers, len(docs[row.doc]), width), np.float32)
        result[:, row.tokens] = values[:, row.places]
    complete = [
        np.zeros((layers, len(doc), width), np.float32) if result is None else result
        for doc, result in zip(docs, partial)
    ]
    return complete  # type: ignore[return-value]  # thinc's Floats3d is a protocol of numpy and cupy arrays


def to_rows(rows: Sequence[Row], doc_layers: Sequence[Floats3d]) -> list[npt.NDArray[np.float32]]:
    """Return the gradients of the rows' layers: the transpose of `to_docs`.

    rows: what `rows_of` returned for the docs.
    doc_layers: gradients of the docs' layers, *Shape:* (layers, tokens, width) for each doc.

    Returns *Shape:* (layers, words, width) for each row.
    """
    results = []
    for row in rows:
        values = np.asarray(doc_layers[row.doc])
        result = np.zeros((values.shape[0], len(row.words), values.shape[2]), np.float32)
        result[:, row.places] = values[:, row.tokens]
        results.append(result)
    return results
