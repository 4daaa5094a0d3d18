"""Plots of docs/results.md."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib

from spacy_elmo.cli.weights import plot_weights
from spacy_elmo.pipeline.mixes import LearnedMix

from ..runs.ablations import SHARES, share_name
from ..runs.experiments import BASELINE, ELMO, NETWORKS, Task
from .alternatives import Alternative
from .learning_runs import LearningRun
from .results_tables import BESIDE_VECTORS, cut_of, values_of
from .run_files import AllRuns, Run, Runs

matplotlib.use("Agg")  # draws without a display; must be chosen before pyplot is imported
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator, NullLocator

_DPI = 120


def plot_summary(path: Path, all_runs: AllRuns) -> None:
    """Plot the error cuts of each task that has them, with a mark at the paper's.

    Two bars: ELMo beside x alone, and beside x with static vectors, as the paper's x had.
    """
    rows = [(task, runs) for task, runs in all_runs if cut_of(task, runs) is not None]
    figure, axes = plt.subplots(figsize=(7.6, 1.3 + 0.5 * len(rows)), layout="constrained")
    bars = (
        ("x alone", -0.2, "tab:blue", ELMO, BASELINE),
        ("x with static vectors", 0.2, "tab:orange", *BESIDE_VECTORS),
    )
    for name, shift, color, network, than in bars:
        cuts = [(row, cut_of(task, runs, network, than)) for row, (task, runs) in enumerate(rows)]
        found = [(row + shift, 100 * cut) for row, cut in cuts if cut is not None]
        if found:
            places, widths = zip(*found)
            axes.barh(places, widths, color=color, height=0.38, label=f"en_mini beside {name}")
        for y, cut in found:
            axes.text(0.3, y, f"{cut:.1f}", va="center", fontsize=8, color="white" if cut > 3 else "black")
    papers = [(row, task.paper) for row, (task, _) in enumerate(rows) if task.paper is not None]
    for number, (row, paper) in enumerate(papers):
        label = None if number else "the paper's biLM, beside static vectors"
        axes.plot([paper] * 2, [row - 0.45, row + 0.45], color="black", label=label)
    axes.set_yticks(range(len(rows)), [task.title for task, _ in rows])
    axes.invert_yaxis()
    axes.set(xlabel="share of the errors that ELMo removes, %")
    figure.legend(loc="outside upper right", ncols=3, fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


def plot_scores(path: Path, task: Task, runs: Runs) -> None:
    """Plot the first measure of a task: a dot for each run, a line at the mean, a column for each network."""
    names = [name for name in task.networks if runs.of(name)]
    figure, axes = plt.subplots(figsize=(1.2 + 1.8 * len(names), 3.2), layout="constrained")
    for x, name in enumerate(names):
        values = [100 * value for value in values_of(runs.of(name), task)]
        axes.plot([x - 0.25, x + 0.25], [statistics.mean(values)] * 2, color="0.3")
        axes.plot([x] * len(values), values, "o", alpha=0.7)
    axes.set(title=task.title, ylabel=f"test {task.measures[0].name}, %", xlim=(-0.5, len(names) - 0.5))
    axes.set_xticks(range(len(names)), [_wrapped(task.networks[name].title) for name in names])
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


def _wrapped(title: str) -> str:
    """Return the title of a network in short lines."""
    return "\n".join(textwrap.wrap(title, 16))


def plot_shares(path: Path, task: Task, runs: Runs) -> None:
    """Plot the first measure over the share of the training part, after Figure 1 of Peters et al. 2018.

    A line for each of the two main networks.
    """
    figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    for name in (BASELINE, ELMO):
        scores = {share: values_of(runs.of(share_name(name, share)), task) for share in (*SHARES, 100)}
        points = [(share, 100 * statistics.mean(values)) for share, values in scores.items() if values]
        axes.plot([share for share, _ in points], [score for _, score in points], "o-", label=NETWORKS[name].title)
    axes.set_xscale("log")
    axes.set_xticks([*SHARES, 100], [str(share) for share in (*SHARES, 100)])
    axes.minorticks_off()
    axes.set(xlabel="share of the training part, %", ylabel=f"{task.measures[0].name}, %", title=task.title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


def plot_costs(path: Path, task: Task, found: Sequence[Alternative]) -> None:
    """Plot the first measure of networks over their megabytes and their words a second: a dot for each network."""
    figure, both = plt.subplots(1, 2, figsize=(9.6, 3.8), sharey=True, layout="constrained")
    costs: dict[str, list[float | None]] = {
        "MB on disk": [one.megabytes for one in found],
        "words per second, two threads": [one.words_per_second for one in found],
    }
    for axes, (name, values) in zip(both, costs.items()):
        for number, (one, value) in enumerate(zip(found, values)):
            if value is not None:
                axes.plot(
                    value, 100 * statistics.mean(one.scores), "o", color=f"C{number}", label=one.title.replace("`", "")
                )
        axes.set_xlim(0, 1.1 * max((value for value in values if value is not None), default=1))
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(name)
        axes.grid(alpha=0.3)
    both[0].set_ylabel(f"test {task.measures[0].name}, %")
    figure.legend(*both[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


def plot_learning(path: Path, runs: Sequence[LearningRun]) -> None:
    """Plot perplexity over the tokens that a biLM has read in all its runs.

    A line for each run, a colour for each biLM. A dotted line leads from the end of a run to the next one.
    """
    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    colors = {bilm: f"C{number}" for number, bilm in enumerate(dict.fromkeys(run.bilm for run in runs))}
    ends: dict[str, tuple[float, float]] = {}
    for run in runs:
        millions = [(run.before + tokens) / 1e6 for tokens, _ in run.points]
        perplexities = [perplexity for _, perplexity in run.points]
        axes.plot(millions, perplexities, ".-", color=colors[run.bilm])
        place = (millions[-1], perplexities[-1])
        if run.bilm in ends:
            axes.plot(*zip(ends[run.bilm], (millions[0], perplexities[0])), ":", color=colors[run.bilm])
        ends[run.bilm] = place
        axes.annotate(run.title, place, xytext=(0, -11), textcoords="offset points", ha="center", fontsize=8)
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


def plot_mixes(path: Path, all_runs: AllRuns) -> bool:
    """Plot the weights of the mixes of all tasks, after Figure 2 of Peters et al. 2018; return whether there are any.

    A row for each mix of the first run of [x; ELMo], a column for each layer, darker for larger weights.
    """
    rows: list[LearnedMix] = []
    for task, runs in all_runs:
        first: list[Run] = runs.of(ELMO)[:1]
        rows += [replace(mix, component=f"{task.title}: {mix.component}") for run in first for mix in run.mixes]
    if rows:
        plot_weights(rows, path)
    return bool(rows)
