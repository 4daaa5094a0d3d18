"""Figures of docs/results.md: means, error cuts, whether two networks differ by more than seeds make likely, plots."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws without a display; must be chosen before pyplot is imported
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, NullLocator

# Student's t by degrees of freedom, two-sided, 5 %; for more than ten, that of ten
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23}


def percent(share: float) -> str:
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
    """Return which pairs differ by more than seeds make likely. pairs: a name, and the scores of the runs of two."""
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for name, one, other in pairs:
        if one and other:
            found[apart(one, other)].append(name)
    words = {True: "Yes", False: "No", None: "Too few runs to tell"}
    answers = [f"{word}: {'; '.join(found[answer])}." for answer, word in words.items() if found[answer]]
    return f"{what} by more than seeds make likely (Student's t-test, 5 %)? {' '.join(answers)}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, *rows]
    assert {len(row) for row in lines} == {len(head)}, lines
    head_line, *others = ("| " + " | ".join(row) + " |" for row in lines)
    return "\n".join([head_line, "|" + "---|" * len(head), *others])


def plot_summary(path: Path, rows: Sequence[tuple[str, float | None, float | None, float | None]]) -> None:
    """Plot error cuts of tasks.

    rows: a title; the cut of ELMo beside x alone, that beside x with static vectors, and that of the paper in %.
    """
    figure, axes = plt.subplots(figsize=(7.6, 1.3 + 0.5 * len(rows)), layout="constrained")
    bars = (("x alone", -0.2, "tab:blue", 1), ("x with static vectors", 0.2, "tab:orange", 2))
    for name, shift, color, column in bars:
        cuts = [(number + shift, row[column]) for number, row in enumerate(rows)]
        found = [(place, 100 * cut) for place, cut in cuts if isinstance(cut, float)]
        if found:
            places, widths = zip(*found)
            axes.barh(places, widths, color=color, height=0.38, label=f"en_mini beside {name}")
        for y, cut in found:
            axes.text(0.3, y, f"{cut:.1f}", va="center", fontsize=8, color="white" if cut > 3 else "black")
    papers = [(number, row[3]) for number, row in enumerate(rows) if row[3] is not None]
    for number, (row, paper) in enumerate(papers):
        label = None if number else "the paper's biLM, beside static vectors"
        axes.plot([paper] * 2, [row - 0.45, row + 0.45], color="black", label=label)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set(xlabel="share of the errors that ELMo removes, %")
    figure.legend(loc="outside upper right", ncols=3, fontsize=8)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def plot_learning(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Plot perplexity over the tokens that a biLM has read in all its runs.

    A line for each run, a colour for each biLM. A dotted line leads from the end of a run to the next one.
    """
    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    colors = {bilm: f"C{number}" for number, bilm in enumerate(dict.fromkeys(run["bilm"] for run in runs))}
    ends: dict[str, tuple[float, float]] = {}
    for run in runs:
        millions = [(run["tokens_before"] + tokens) / 1e6 for tokens, _ in run["evaluations"]]
        perplexities = [perplexity for _, perplexity in run["evaluations"]]
        bilm, place = run["bilm"], (millions[-1], perplexities[-1])
        axes.plot(millions, perplexities, ".-", color=colors[bilm])
        if bilm in ends:
            axes.plot(*zip(ends[bilm], (millions[0], perplexities[0])), ":", color=colors[bilm])
        ends[bilm] = place
        axes.annotate(run["title"], place, xytext=(0, -11), textcoords="offset points", ha="center", fontsize=8)
    for bilm, color in colors.items():
        axes.plot([], [], ".-", color=color, label=bilm)
    axes.set(xlabel="million tokens that the biLM has read", ylabel="perplexity, held-out Wikipedia", yscale="log")
    axes.yaxis.set_major_locator(MaxNLocator(nbins=10))  # a logarithmic scale has too few marks between 50 and 150
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter("{x:.0f}")
    axes.margins(y=0.1)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
