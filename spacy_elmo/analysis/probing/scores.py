"""How well labels were predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Score(NamedTuple):
    """Shares from 0 to 1.

    accuracy: of the tokens whose label is right.
    f1: of the labels other than "outside"; None: there is no such label.
    """

    accuracy: float
    f1: float | None


def score(predicted: Sequence[str], labels: Sequence[str], outside: str | None) -> Score:
    """Compare labels token by token.

    predicted, labels: of the same tokens, one or more.
    outside: the label of tokens that are not what is looked for, such as "O" for entities; None: there is none.
    """
    right = sum(a == b for a, b in zip(predicted, labels))
    if outside is None:
        return Score(right / len(labels), None)
    found, present = (sum(label != outside for label in given) for given in (predicted, labels))
    both = sum(a == b != outside for a, b in zip(predicted, labels))
    return Score(right / len(labels), 2 * both / (found + present) if both else 0.0)
