"""The lines with which docs/results.md begins."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from ablation_tables import Pace, pace_of
from alternatives import words_per_second
from experiments import BASELINE, ELMO, TASKS, Task, speed_of
from results_tables import cut_of
from run_files import AllRuns

_OTHERS = (  # network, the one that it is compared with, and what that says
    ("random", BASELINE, "A biLM of the same sizes with random weights instead of ELMo, errors"),
    ("vectors", BASELINE, "Static vectors (floret) of the biLM's first text instead of ELMo, errors"),
    ("vectors_elmo", "vectors", "ELMo beside such vectors, errors"),
)


def summary_lines(project: Path, all_runs: AllRuns) -> list[str]:
    """Return what the runs say in the main, a line each. A task must have runs of both main networks."""
    cuts = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs)) is not None]
    mean = 100 * statistics.mean(cut for _, cut in cuts)
    least, most = (choose(cuts, key=lambda one: one[1]) for choose in (min, max))
    lines = [f"Errors that ELMo removes: {mean:.0f} % in the mean, from {_named(least)} to {_named(most)}."]
    for network, than, what in _OTHERS:
        others = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs, network, than)) is not None]
        if others:
            listed = ", ".join(_named((task, abs(cut)), " fewer" if cut > 0 else " more") for task, cut in others)
            lines.append(f"{what}: {listed}.")
    paces = [(task, pace) for task, runs in all_runs if (pace := pace_of(runs)) is not None]
    if paces:
        lines.append(f"Updates after which ELMo has the best score of x alone: {_paces(paces)}.")
    task = TASKS[0]
    speeds = [words_per_second(speed_of(project, task.name, network)) for network in (BASELINE, ELMO)]
    if speeds[0] and speeds[1]:
        lines.append(f"Speed beside x alone, on two threads: {_named((task, speeds[1] / speeds[0]))}.")
    return lines


def _named(figure: tuple[Task, float], what: str = "") -> str:
    task, share = figure
    return f"{100 * share:.0f} %{what} ({task.title})"


def _paces(paces: Iterable[tuple[Task, Pace]]) -> str:
    found = []
    for task, pace in paces:
        share = "none of its updates" if pace.elmo is None else f"{100 * pace.elmo / pace.alone:.0f} % of its updates"
        runs = "" if pace.reached == pace.runs else f", {pace.reached} of {pace.runs} runs"
        found.append(f"{share} ({task.title}{runs})")
    return ", ".join(found)
