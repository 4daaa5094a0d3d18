"""Plots of docs/results.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws without a display; must be chosen before pyplot is imported
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, NullLocator

_DPI = 120


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
    figure.savefig(path, dpi=_DPI)
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
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)
