"""Roles as BIO tags: tag 0 is O; then a B- tag for each label; then an I- tag for each, in the same order."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

OUTSIDE = 0


def tags_of(spans: Iterable[tuple[int, int, str]], length: int, labels: Sequence[str]) -> NDArray[np.intp]:
    """Return the tags of a row. *Shape:* (length,).

    spans: start, end and label of each role, as the row counts its tokens. What lies outside the row is left out.
    length: number of the row's tokens.
    labels: all labels. Roles with other labels are left out.
    """
    tags = np.zeros(length, dtype=np.intp)
    numbers = {label: number for number, label in enumerate(labels)}
    for start, end, label in spans:
        start, end = max(start, 0), min(end, length)
        if label in numbers and start < end:
            tags[start:end] = 1 + len(labels) + numbers[label]
            tags[start] = 1 + numbers[label]
    return tags


def spans_of(tags: NDArray[np.intp], labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return start, end and label of each role. tags: legal ones, of a row. *Shape:* (length,)."""
    spans: list[tuple[int, int, str]] = []
    for place, tag in enumerate(tags.tolist()):
        if 0 < tag <= len(labels):
            spans.append((place, place + 1, labels[tag - 1]))
        elif tag != OUTSIDE:
            start, _, label = spans[-1]
            spans[-1] = (start, place + 1, label)
    return spans
