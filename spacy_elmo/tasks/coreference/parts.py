"""Divides a doc into parts of whole sentences, so that memory does not grow with the doc."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.attrs import IS_SPACE, LOWER
from spacy.tokens import Doc

Array = NDArray[Any]
LONGEST_SENTENCE = 250  # tokens; longer ones are cut


class Part(NamedTuple):
    """Successive sentences of a doc.

    start: its first token in the doc.
    lengths: number of tokens of each sentence.
    lower: ids of the lower-case words. *Shape:* (tokens,)
    space: 1 for tokens that are whitespace. *Shape:* (tokens,)
    """

    start: int
    lengths: list[int]
    lower: Array
    space: Array

    @property
    def end(self) -> int:
        """The token of the doc after the last one of the part."""
        return self.start + sum(self.lengths)


def split_into_parts(doc: Doc, most: int) -> Iterator[Part]:
    """Return the parts of a doc, in order.

    doc: the doc. If it has no sentence boundaries, it is cut into pieces of LONGEST_SENTENCE tokens.
    most: number of tokens of a part, at most, but at least one sentence.
    """
    words = doc.to_array([LOWER, IS_SPACE])
    sentences = sentence_lengths(doc)
    first = start = 0
    while first < len(sentences):
        last, end = first + 1, start + sentences[first]
        while last < len(sentences) and end + sentences[last] - start <= most:
            end += sentences[last]
            last += 1
        yield Part(start, sentences[first:last], words[start:end, 0], words[start:end, 1])
        first, start = last, end


def sentence_lengths(doc: Doc) -> list[int]:
    """Return the number of tokens of each sentence of a doc, after long ones are cut."""
    whole = [len(sent) for sent in doc.sents] if doc.has_annotation("SENT_START") else [len(doc)]
    return [min(LONGEST_SENTENCE, length - cut) for length in whole for cut in range(0, length, LONGEST_SENTENCE)]


def spans_of(part: Part, max_width: int) -> Array:
    """Return the widths and starts of all spans that may be mentions, in the order of `score_spans`.

    A span stands in one sentence, and neither begins nor ends with whitespace.

    *Shape:* (spans, 2): the width less 1, and the first token in the part.
    """
    sentence = np.repeat(np.arange(len(part.lengths)), part.lengths)
    tokens = len(sentence)
    valid = np.zeros((max_width, tokens), dtype=bool)
    for width in range(min(max_width, tokens)):
        count = tokens - width
        valid[width, :count] = sentence[:count] == sentence[width:]
        valid[width, :count] &= (part.space[:count] == 0) & (part.space[width:] == 0)
    return np.argwhere(valid).astype(np.int64)


def best_spans(spans: Array, scores: Array, most: int) -> Array:
    """Return which spans have the highest scores, among them no two that cross; they are in the order of the text.

    spans: the first token of each, and the token after its last one. *Shape:* (spans, 2)
    scores: *Shape:* (spans,)
    most: number of spans, at most.
    """
    kept: list[int] = []
    starts, ends = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    for number in np.argsort(-scores, kind="stable"):
        if len(kept) == most:
            break
        start, end = spans[number]
        others, others_end = starts[: len(kept)], ends[: len(kept)]
        after = (start < others) & (others < end) & (end < others_end)
        before = (others < start) & (start < others_end) & (others_end < end)
        if not (after | before).any():
            starts[len(kept)], ends[len(kept)] = start, end
            kept.append(int(number))
    order = np.array(kept, dtype=np.int64)
    return order[np.lexsort((spans[order, 1], spans[order, 0]))]
