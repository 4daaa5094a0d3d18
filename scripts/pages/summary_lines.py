"""The lines with which docs/results.md begins."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path

from ..runs.experiments import BASELINE, ELMO, NETWORKS, TASKS, Task, speed_of
from .ablation_tables import Pace, least_shares, pace_of, with_earlier_ablations
from .alternatives import words_per_second
from .results_tables import WITH_VECTORS, cut_of, of_same_weights, with_earlier_weights
from .run_files import AllRuns


def summary_lines(project: Path, all_runs: AllRuns) -> list[str]:
    """Return what the runs say in the main, a line each. A task must have runs of both main networks."""
    cuts = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs)) is not None]
    mean = 100 * statistics.mean(cut for _, cut in cuts)
    least, most = (choose(cuts, key=lambda one: one[1]) for choose in (min, max))
    lines = [f"Errors that ELMo removes: {mean:.0f} % on average, from {_named(least)} to {_named(most)}."]
    lines += _random_line(all_runs) + _vectors_line(all_runs)
    lines += _learning_lines(project, all_runs)
    task = TASKS[0]
    speeds = [words_per_second(speed_of(project, task.name, network)) for network in (BASELINE, ELMO)]
    if speeds[0] and speeds[1]:
        share = _named((task, speeds[1] / speeds[0]))
        lines.append(f"Speed of [x; ELMo] on two threads, as a share of that of x alone: {share}.")
    return lines


def earlier_weights_lines(all_runs: AllRuns) -> list[str]:
    """Return on which tasks a network with ELMo was trained with weights that are not the package's."""
    lines = []
    for network in (ELMO, "vectors_elmo"):
        if earlier := with_earlier_weights(all_runs, network):
            tasks = [task for task, runs in all_runs if runs.of(network)]
            where = f"all its {len(tasks)} tasks" if len(earlier) == len(tasks) > 1 else "; ".join(earlier)
            lines.append(f"{NETWORKS[network].title} had earlier weights of `en_mini` on {where}.")
    return lines


def _learning_lines(project: Path, all_runs: AllRuns) -> list[str]:
    """Return how soon, and from how little, [x; ELMo] is as good as x alone; nothing if that was not recorded."""
    lines = []
    paces = [(task, pace) for task, runs in all_runs if (pace := pace_of(runs)) is not None]
    if paces:
        lines.append(
            "Updates: [x; ELMo] reaches the best score of x alone on the development part after this share of the "
            f"updates that x alone takes: {_paces(paces)}."
        )
    if shares := least_shares(project, all_runs):
        listed = ", ".join(_named((task, share / 100)) for task, share in shares)
        weights = ", with earlier weights of `en_mini`" if with_earlier_ablations(project) else ""
        lines.append(
            "Training data: [x; ELMo] is as good with a share of the training part as x alone with all of it: "
            f"{listed}; one run of each share, on the development part{weights}."
        )
    return lines


def _random_line(all_runs: AllRuns) -> list[str]:
    """Return what random weights do in the place of the biLM's; nothing if no task has runs of them."""
    cuts = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs, "random")) is not None]
    if not cuts:
        return []
    mean = statistics.mean(cut for _, cut in cuts)
    least, most = (choose(cuts, key=lambda one: one[1]) for choose in (min, max))
    ends = " to ".join(f"{_difference(cut)} ({task.title})" for task, cut in (least, most))
    return [
        f"Control: compared with x alone, a biLM of random weights leaves {_difference(mean)} on average"
        f"{_of(len(cuts), all_runs)}, from {ends}."
    ]


def _vectors_line(all_runs: AllRuns) -> list[str]:
    """Return what static vectors bring in place of ELMo, and beside it; nothing if no task has runs of them.

    Beside it: without the tasks on which the networks had different weights of `en_mini`.
    """
    cuts = [(task, cut_of(task, runs, "vectors"), cut_of(task, runs)) for task, runs in all_runs]
    found = [(task, vectors, elmo) for task, vectors, elmo in cuts if vectors is not None and elmo is not None]
    if not found:
        return []
    means = [statistics.mean(column) for column in zip(*((vectors, elmo) for _, vectors, elmo in found))]
    line = (
        f"Static vectors (floret) of Wikipedia, in x, remove {100 * means[0]:.0f} % of the errors on average"
        f"{_of(len(found), all_runs)}, and ELMo {100 * means[1]:.0f} %."
    )
    if ahead := [task.title for task, vectors, elmo in found if vectors > elmo]:
        line += f" They have the higher mean on {'; '.join(ahead)}."
    same = [(task, runs) for task, runs in all_runs if of_same_weights(runs, WITH_VECTORS)]
    of_tasks = [[cut_of(task, runs, network) for network in WITH_VECTORS] for task, runs in same]
    complete = [[cut for cut in of_task if cut is not None] for of_task in of_tasks if None not in of_task]
    if complete:
        elmo, both = (100 * statistics.mean(of_network) for of_network in list(zip(*complete))[1:])
        line += f" Both together remove {both:.0f} %"
        if len(complete) < len(found):
            line += f"{_of(len(complete), all_runs)}, on which ELMo alone removes {elmo:.0f} %"
        line += "."
    return [line]


def _of(number: int, all_runs: AllRuns) -> str:
    """Return of how many tasks a mean is; "" if it is of all that have runs."""
    if number == sum(bool(runs.complete) for _, runs in all_runs):
        return ""
    return f" over {number} task{'s' * (number > 1)}"


def _difference(cut: float) -> str:
    if round(100 * cut) == 0:
        return "as many errors"
    return f"{100 * abs(cut):.0f} % {'fewer' if cut > 0 else 'more'} errors"


def _named(figure: tuple[Task, float]) -> str:
    task, share = figure
    return f"{100 * share:.0f} % ({task.title})"


def _paces(paces: Iterable[tuple[Task, Pace]]) -> str:
    found = []
    for task, pace in paces:
        share = f"{100 * pace.elmo / pace.alone:.0f} %" if pace.elmo is not None else "never"
        runs = "" if pace.reached == pace.runs else f", {pace.reached} of {pace.runs} runs"
        if pace.runs == 1:
            runs = ", one run"
        found.append(f"{share} ({task.title}{runs})")
    return ", ".join(found)
