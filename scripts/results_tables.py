"""Tables of docs/results.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from experiments import BASELINE, KINDS, Task
from run_files import Run, Runs

from spacy_elmo.pipeline.mixes import LearnedMix


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def spread(values: Sequence[float]) -> str:
    """Return mean, sample standard deviation and range in percent, as text. values: between 0 and 1."""
    percents = [100 * value for value in values]
    mean = f"{statistics.mean(percents):.2f}"
    if len(percents) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(percents):.2f} ({min(percents):.2f} to {max(percents):.2f})"


def error_cut(baseline: Sequence[float], values: Sequence[float]) -> float | None:
    """Return how much smaller the mean error is than the baseline's: 1 - (1 - F) / (1 - F of the baseline)."""
    left = 1 - statistics.mean(baseline) if baseline else 0.0
    return 1 - (1 - statistics.mean(values)) / left if left else None


def scores_table(task: Task, runs: Runs) -> str:
    """Return a table with a row for each measure and kind: mean, spread, relative error cut and number of runs."""
    rows = []
    for measure in task.measures:
        base = [run.scores[measure.key] for run in runs.of(BASELINE)]
        for kind in task.kinds:
            values = [run.scores[measure.key] for run in runs.of(kind)]
            if values:
                cut = error_cut(base, values) if kind != BASELINE else None
                shown_cut = "" if cut is None else f"{100 * cut:.1f} %"
                rows.append([measure.name, KINDS[kind], spread(values), shown_cut, str(len(values))])
    return table(["measure", "network", "test, %: mean ± deviation (range)", "error cut", "runs"], rows)


def minutes_table(task: Task, runs: Runs) -> str:
    """Return a table of the minutes of training: mean and range."""
    rows = []
    for kind in task.kinds:
        minutes = [run.seconds / 60 for run in runs.of(kind) if run.seconds is not None]
        if minutes:
            between = f"{min(minutes):.1f} to {max(minutes):.1f}"
            rows.append([KINDS[kind], f"{statistics.mean(minutes):.1f}", between, str(len(minutes))])
    return table(["network", "minutes of training, mean", "range", "runs"], rows) if rows else ""


def mixes_table(mixes: Iterable[tuple[Run, Sequence[LearnedMix]]]) -> str:
    """Return a table of the mixes of each run: softmax weights and gamma."""
    rows = [
        [KINDS[run.kind], str(run.seed), mix.component, mix.place, _numbers(mix.weights), f"{mix.gamma:.3f}"]
        for run, of_run in mixes
        for mix in of_run
    ]
    head = ["network", "seed", "component", "place", "weights of the layers, from 0 on", "gamma"]
    return table(head, rows) if rows else ""


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
