"""Vectors of docs that were retokenised, cut or joined after the pipe: which stored rows belong to which tokens."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from spacy.strings import get_string_id
from spacy.tokens import Doc, Span
from thinc.api import get_array_module

from .storage import Block, tokens_of


def follow(part: Doc | Span, blocks: list[Block], values_of: Callable[[Block, Any], Any]) -> Any | None:
    """Return the values of the part's tokens, from the embedded tokens that have the same characters.

    A token that is as it was has its own value. A token that was merged has the mean over its parts that are not
    whitespace. A token that was split off has the value of the token that it is a part of.

    part: the doc or span.
    blocks: what is stored on the doc, at least one.
    values_of: returns a block's values of some rows, *Shape:* (..., rows, width); the second argument selects them.

    Returns *Shape:* (..., tokens, width); None if a token has no value, or has one in two blocks.
    """
    doc, now = (part if isinstance(part, Doc) else part.doc), tokens_of(part)
    none = values_of(blocks[0], slice(0))
    columns: list[Any] = [None] * len(now)
    for block in blocks:
        for i, rows in _rows(doc, now, block):
            if columns[i] is not None:
                return None
            values = values_of(block, rows)
            columns[i] = values.mean(-2) if rows else values.sum(-2)  # no rows: only whitespace, which has zeros
    if any(column is None for column in columns):
        return None
    return get_array_module(none).stack(columns, -2) if columns else none


def _rows(doc: Doc, now: Any, block: Block) -> Iterator[tuple[int, list[int]]]:
    """Yield the index of each token that the block has values for, and its rows without whitespace.

    now: *Shape:* (tokens, 3), the tokens as they are now.
    """
    starts = block.tokens[:, 1].astype(np.int64) + block.start
    ends = starts + block.tokens[:, 2].astype(np.int64)
    begins = now[:, 1].astype(np.int64)
    stops = begins + now[:, 2].astype(np.int64)
    first = np.searchsorted(starts, begins, "right") - 1
    last = np.searchsorted(starts, stops, "left")
    text = ""
    for i, (a, b) in enumerate(zip(first.tolist(), last.tolist())):
        if a >= 0 and b - a == 1 and starts[a] == begins[i] and block.tokens[a, 0] == now[i, 0]:
            yield i, [a]
            continue
        if not len(starts) or stops[i] <= starts[0] or begins[i] >= ends[-1]:
            continue
        text = text or doc.text
        begin, stop = _without_whitespace(text, int(begins[i]), int(stops[i]))
        if begin == stop:
            if starts[0] <= begins[i] and stops[i] <= ends[-1]:
                yield i, []
            continue
        a, b = int(np.searchsorted(starts, begin, "right")) - 1, int(np.searchsorted(starts, stop, "left"))
        if a < 0 or begin >= ends[a] or stop > ends[b - 1]:
            continue
        parts = {row: text[max(starts[row], 0) : max(ends[row], 0)] for row in range(a, b)}
        if all(get_string_id(word) == int(block.tokens[row, 0]) for row, word in parts.items()):
            yield i, [row for row, word in parts.items() if not word.isspace()]


def _without_whitespace(text: str, begin: int, stop: int) -> tuple[int, int]:
    """Return the place of a token without the whitespace at its ends, which was between tokens before a merge and a
    split: "the bank" may be split into "the " and "bank". Both are the same if there is nothing else.
    """
    word = text[begin:stop].rstrip()
    stop = begin + len(word)
    return stop - len(word.lstrip()), stop
