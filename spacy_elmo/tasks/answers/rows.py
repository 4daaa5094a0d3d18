"""Rows of the network: a question and a window of its context, as indices of tokens."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from spacy.attrs import IS_PUNCT, IS_SPACE, LOWER
from spacy.tokens import Doc

from .questions import Parts

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.float32]


class Row(NamedTuple):
    """A question and a window of its context.

    doc: index of the doc in its batch.
    question: *Shape:* (question tokens,), indices in the doc.
    window: *Shape:* (window tokens,), indices in the doc.
    used: the part of the window whose scores are used, as a slice of `window`.
    place: the same part, as a slice of the context.
    """

    doc: int
    question: Indices
    window: Indices
    used: slice
    place: slice


def rows_of(parts: Iterable[Parts | None], longest: int, overlap: int) -> list[Row]:
    """Return the rows of docs, in the order of the docs and of their windows. Each token of a context is used once.

    parts: question and context of each doc; None: the doc has no rows.
    longest: number of tokens in a window; the last may have fewer.
    overlap: number of tokens that neighbouring windows share. Of these, each window uses the half that is nearer to it.
    """
    rows = []
    for doc, found in enumerate(parts):
        if found is None:
            continue
        question = np.arange(found.question.start, found.question.end)
        start, end = found.context.start, found.context.end
        used = start
        while True:
            stop = min(start + longest, end)
            last = stop if stop == end else stop - overlap // 2
            place = slice(used - found.context.start, last - found.context.start)
            rows.append(Row(doc, question, np.arange(start, stop), slice(used - start, last - start), place))
            if stop == end:
                break
            start, used = stop - overlap, last
    return rows


def shared_words(doc: Doc, row: Row) -> Flags:
    """Return for each token of a row, first the question's, whether the other part has its word, in lower case.

    Punctuation and whitespace never count.

    *Shape:* (question tokens + window tokens,)
    """
    attributes = doc.to_array([LOWER, IS_PUNCT, IS_SPACE])
    words = np.where(attributes[:, 1:].any(axis=1), 0, attributes[:, 0])
    question, window = words[row.question], words[row.window]
    shared = np.concatenate([np.isin(question, window[window > 0]), np.isin(window, question[question > 0])])
    result: Flags = shared.astype(np.float32)
    return result


def batches_of(rows: Sequence[Row], cells: int) -> list[list[Row]]:
    """Divide rows into batches of similar lengths, so that the memory of predictions has a bound.

    rows: the rows.
    cells: number of pairs of tokens, padding included, that a batch compares, unless it is a single row.
    """
    batches: list[list[Row]] = []
    longest_question = 0
    for row in sorted(rows, key=lambda row: (len(row.window), len(row.question))):
        window, question = len(row.window), len(row.question)
        longest_question = max(longest_question, question)
        if not batches or (len(batches[-1]) + 1) * window * (window + longest_question) > cells:
            batches.append([])
            longest_question = question
        batches[-1].append(row)
    return batches
