"""The best answers, by the scores of their starts and ends."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Best(NamedTuple):
    """An answer. start, end: indices in the context, the end after its last token. score: its probability."""

    start: int
    end: int
    score: float


def best_spans(scores: Floats, allowed: npt.NDArray[np.bool_], longest: int, count: int) -> list[Best]:
    """Return the most probable spans, best first; of equal ones, the first in the text.

    A span's probability is that of its start times that of its end, each normalised over the context.

    scores: *Shape:* (tokens, 2), scores of each token as start and end.
    allowed: *Shape:* (tokens,), tokens at which an answer may start or end.
    longest: number of tokens in a span, at most.
    count: number of spans, at most.
    """
    if not allowed.any():
        return []
    starts, ends = _log_softmax(np.where(allowed, scores.T.astype(np.float64), -np.inf))
    longest = min(longest, len(ends))
    padded = np.concatenate([ends, np.full(longest - 1, -np.inf)])
    joint = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)  # (start, length - 1)
    flat = joint.ravel()
    count = min(count, int(np.isfinite(flat).sum()))
    least = np.partition(flat, -count)[-count]
    candidates = np.flatnonzero(flat >= least)
    chosen = candidates[np.argsort(-flat[candidates], kind="stable")[:count]]
    return [Best(int(i) // longest, int(i) // longest + int(i) % longest + 1, float(np.exp(flat[i]))) for i in chosen]


def _log_softmax(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Normalise each row. scores: *Shape:* (rows, tokens)."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result
