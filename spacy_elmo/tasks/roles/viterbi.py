"""The best legal sequence of BIO tags: I-X stands after B-X or I-X only, and never first."""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
Tags = NDArray[np.intp]


def best_tags(scores: Scores) -> Tags:
    """Return the legal tags with the highest sum of scores. *Shape:* (length,).

    All transitions that are legal count the same, so a step needs no matrix of transitions: what comes before O or a
    B- tag is the best of all, and what comes before I-X is the better of B-X and I-X.

    scores: *Shape:* (length, 1 + 2 * labels), tags in the order of `tags_of`.
    """
    length, width = scores.shape
    labels = (width - 1) // 2
    tags = np.zeros(length, dtype=np.intp)
    if not length:
        return tags
    back = np.zeros((length, width), dtype=np.intp)
    path = scores[0].astype(np.float64)
    path[1 + labels :] = -np.inf
    inside = np.arange(labels)
    for step in range(1, length):
        best = int(path.argmax())
        begins = path[1 : 1 + labels] >= path[1 + labels :]
        back[step, : 1 + labels] = best
        back[step, 1 + labels :] = np.where(begins, 1, 1 + labels) + inside
        path = path[back[step]] + scores[step]
    tags[-1] = path.argmax()
    for step in range(length - 1, 0, -1):
        tags[step - 1] = back[step, tags[step]]
    return tags
