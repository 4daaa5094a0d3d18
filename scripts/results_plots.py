"""Plots of docs/results.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib
from experiments import KINDS, Task
from run_files import Run, Runs

from spacy_elmo.cli.views.weights_plot import plot_weights
from spacy_elmo.pipeline.mixes import LearnedMix

matplotlib.use("Agg")  # draws without a display; must be chosen before pyplot is imported
from matplotlib import pyplot as plt

_DPI = 120


def plot_scores(path: Path, task: Task, runs: Runs) -> None:
    """Plot the first measure of a task: a dot for each run, a line at the mean, a column for each kind."""
    measure = task.measures[0]
    kinds = [kind for kind in task.kinds if runs.of(kind)]
    figure, axes = plt.subplots(figsize=(1.2 + 1.8 * len(kinds), 3.2), layout="constrained")
    for x, kind in enumerate(kinds):
        values = [100 * run.scores[measure.key] for run in runs.of(kind)]
        axes.plot([x - 0.25, x + 0.25], [statistics.mean(values)] * 2, color="0.3")
        axes.plot([x] * len(values), values, "o", alpha=0.7)
    axes.set(title=task.title, ylabel=f"test {measure.name}, %", xlim=(-0.5, len(kinds) - 0.5))
    axes.set_xticks(range(len(kinds)), [KINDS[kind].replace(" of ", "\nof ") for kind in kinds])
    axes.grid(axis="y", alpha=0.3)
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)


def plot_mixes(path: Path, mixes: Sequence[tuple[Run, Sequence[LearnedMix]]]) -> None:
    """Plot the weights of mixes: a row for each mix, a column for each layer, darker for larger weights."""
    rows = [replace(mix, component=f"{run.kind}, seed {run.seed}") for run, of_run in mixes for mix in of_run]
    plot_weights(rows, path)
