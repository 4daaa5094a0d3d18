"""Plot of the scores of parts of the training data, after Figure 1 of Peters et al. 2018."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from ablations import SHARES, share_name
from experiments import BASELINE, ELMO, NETWORKS, Task
from run_files import Runs

matplotlib.use("Agg")  # draws without a display; must be chosen before pyplot is imported
from matplotlib import pyplot as plt

_DPI = 120


def plot_shares(path: Path, task: Task, runs: Runs) -> None:
    """Plot the first measure over the share of the training part, a line for each of the two main networks."""
    measure, test = task.measures[0], next(iter(task.tests))
    figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    for name in (BASELINE, ELMO):
        found = [(share, run) for share in (*SHARES, 100) for run in runs.of(share_name(name, share))]
        scores = [100 * run.tests[test][measure.key] for _, run in found]
        axes.plot([share for share, _ in found], scores, "o-", label=NETWORKS[name].title)
    axes.set_xscale("log")
    axes.set_xticks([*SHARES, 100], [str(share) for share in (*SHARES, 100)])
    axes.minorticks_off()
    axes.set(xlabel="share of the training part, %", ylabel=f"{measure.name}, %", title=task.title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=_DPI)
    plt.close(figure)
