"""The lines with which docs/results.md begins."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from ablation_tables import pace_of
from experiments import BASELINE, ELMO, Task
from results_tables import cut_of
from run_files import AllRuns, Runs

_CONTROLS = {
    "random": "Errors removed by a biLM of the same sizes with random weights",
    "vectors": "Errors removed by static vectors, trained on the biLM's first text",
}


def summary_lines(all_runs: AllRuns) -> list[str]:
    """Return what the runs say in the main, a line each. Some runs of both main networks must be there."""
    cuts = [100 * cut for task, runs in all_runs if (cut := cut_of(task, runs)) is not None]
    lines = [
        f"ELMo removes {min(cuts):.0f} to {max(cuts):.0f} % of the errors of {len(cuts)} tasks, "
        f"{statistics.mean(cuts):.0f} % in the mean."
    ]
    for network, what in _CONTROLS.items():
        others = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs, network)) is not None]
        if others:
            lines.append(f"{what}: {_listed((task, 100 * cut) for task, cut in others)}.")
    paces = [(task, pace) for task, runs in all_runs if (pace := pace_of(runs)) is not None]
    soon = [(task, 100 * pace.elmo / pace.alone) for task, pace in paces if pace.elmo is not None]
    if soon:
        lines.append(f"Updates that it needs for the best score of x alone, beside those of x alone: {_listed(soon)}.")
    speeds = [100 * _speed(runs, ELMO) / _speed(runs, BASELINE) for _, runs in all_runs if _both(runs)]
    lines.append(
        f"It costs time: {min(speeds):.0f} to {max(speeds):.0f} % of the words a second of x alone, by the task."
    )
    return lines


def _listed(figures: Iterable[tuple[Task, float]]) -> str:
    return ", ".join(f"{figure:.0f} % ({task.title})" for task, figure in figures)


def _both(runs: Runs) -> bool:
    return bool(runs.of(BASELINE)) and bool(runs.of(ELMO))


def _speed(runs: Runs, network: str) -> float:
    return statistics.mean(run.words_per_second for run in runs.of(network))
