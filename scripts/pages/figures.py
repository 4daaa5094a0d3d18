"""Figures of docs/results.md: means, error cuts, whether seeds alone can tell two networks apart, and tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

# Student's t by degrees of freedom, two-sided, 5 %; for more than ten, that of ten
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23}


def percent(share: float) -> str:
    """Return a share as a number of percent. Raises ValueError if it is not between 0 and 1."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share is {share!r}, not a number between 0 and 1")
    return f"{100 * share:.1f}"


def mean_percent(values: Sequence[float]) -> str:
    """Return the mean of shares as a number of percent; "" without values."""
    return percent(statistics.mean(values)) if values else ""


def spread(values: Sequence[float], with_range: bool = False) -> str:
    """Return mean, sample standard deviation and perhaps the range of shares in percent, as text; "" without values."""
    percents = [100 * value for value in values]
    if not percents:
        return ""
    text = f"{statistics.mean(percents):.2f}"
    if len(percents) > 1:
        text += f" ± {statistics.stdev(percents):.2f}"
        text += f" ({min(percents):.2f} to {max(percents):.2f})" if with_range else ""
    return text


def span(values: Sequence[float]) -> str:
    """Return the least and the largest one of numbers as text."""
    return " to ".join(dict.fromkeys(f"{end:,.0f}" for end in (min(values), max(values))))


def error_cut(baseline: Sequence[float], values: Sequence[float]) -> float | None:
    """Return how much smaller the mean error is than the baseline's: 1 - (1 - F) / (1 - F of the baseline).

    None if one of the two has no values, or if the baseline makes no errors.
    """
    if not baseline or not values:
        return None
    left = 1 - statistics.mean(baseline)
    return 1 - (1 - statistics.mean(values)) / left if left else None


def shown_cut(cut: float | None) -> str:
    """Return an error cut as text; "" for None."""
    return "" if cut is None else f"{100 * cut:.1f} %"


def student(freedom: int) -> float:
    """Return how many standard errors a difference must have, to be due to chance in one of twenty cases."""
    return _STUDENT[min(freedom, max(_STUDENT))]


def apart(one: Sequence[float], other: Sequence[float]) -> bool | None:
    """Return whether the means of two networks differ by more than seeds make likely: Student's t-test, 5 %.

    The variances of the two are taken to be the same. None if there are too few runs to tell.
    """
    if min(len(one), len(other)) < 2:
        return None
    freedom = len(one) + len(other) - 2
    squares = sum((len(values) - 1) * statistics.variance(values) for values in (one, other))
    error = math.sqrt(squares / freedom * (1 / len(one) + 1 / len(other)))
    return abs(statistics.mean(one) - statistics.mean(other)) > student(freedom) * error


def apart_line(what: str, pairs: Iterable[tuple[str, Sequence[float], Sequence[float]]]) -> str:
    """Return which pairs differ by more than seeds make likely.

    what: the pairs have in common, as in "Do two networks differ in F1".
    pairs: a name, and the scores of the runs of two networks.
    """
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for name, one, other in pairs:
        if one and other:
            found[apart(one, other)].append(name)
    words = {True: "Yes", False: "No", None: "Too few runs to tell"}
    answers = [f"{word}: {'; '.join(found[answer])}." for answer, word in words.items() if found[answer]]
    return f"{what} by more than seeds make likely (Student's t-test, 5 %)? {' '.join(answers)}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown. Raises ValueError if a row does not fit the head, or if a cell would end itself."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        if len(row) != len(head) or any("\n" in cell or "|" in cell for cell in row):
            raise ValueError(f"a row of {len(row)} cells, in a table of {len(head)}, or a line end in one: {row}")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)
