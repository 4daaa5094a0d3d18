"""The lines with which docs/results.md begins."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from ..runs.experiments import BASELINE, ELMO, NETWORKS, TASKS, Task
from .ablation_tables import least_shares, with_earlier_ablations
from .alternatives import read_speed
from .figures import percent
from .paces import pace_of
from .results_tables import BESIDE_VECTORS, WITH_VECTORS, cut_of, of_same_weights, with_earlier_weights
from .run_files import AllRuns


def summary_lines(project: Path, all_runs: AllRuns) -> list[str]:
    """Return what the runs say in the main, a line each. A task must have runs of both main networks."""
    cuts = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs)) is not None]
    mean = 100 * statistics.mean(cut for _, cut in cuts)
    least, most = _ends(cuts)
    lines = [f"ELMo removes {mean:.0f} % of the errors on average, from {_named(least)} to {_named(most)}."]
    lines += _vectors_line(all_runs) + _random_line(all_runs) + _learning_line(project, all_runs)
    return lines + _speed_line(project)


def earlier_weights_lines(all_runs: AllRuns) -> list[str]:
    """Return on which tasks a network with ELMo was trained with weights that are not the package's."""
    lines = []
    for network in (ELMO, "vectors_elmo"):
        if earlier := with_earlier_weights(all_runs, network):
            tasks = [task for task, runs in all_runs if runs.of(network)]
            where = f"all its {len(tasks)} tasks" if len(earlier) == len(tasks) > 1 else "; ".join(earlier)
            lines.append(f"{NETWORKS[network].title} had earlier weights of `en_mini` on {where}.")
    return lines


def _learning_line(project: Path, all_runs: AllRuns) -> list[str]:
    """Return how soon, and from how little, [x; ELMo] is as good as x alone; nothing if that was not recorded."""
    sentences = []
    paces = [(task, pace.elmo / pace.alone) for task, runs in all_runs if (pace := pace_of(runs)) and pace.elmo]
    if paces:
        least, most = (f"{100 * share:.0f} %" for _, share in _ends(paces))
        shares = least if least == most else f"{least} to {most}"
        line = f"[x; ELMo] reaches the best score of x alone in {shares} of its updates ([how soon](#how-soon))."
        sentences.append(line)
    if found := least_shares(project, all_runs):
        listed = "; ".join(
            f"with {one.share} % of that of {one.task.title}, [x; ELMo] has {percent(one.elmo)}, and x alone with all "
            f"of it {percent(one.alone)}"
            for one in found
        )
        weights = ", with earlier weights of `en_mini`" if with_earlier_ablations(project) else ""
        sentences.append(f"It needs less of the training part, too: {listed} (the development part; one run{weights}).")
    return [" ".join(sentences)] if sentences else []


def _random_line(all_runs: AllRuns) -> list[str]:
    """Return what random weights do in the place of the biLM's; nothing if no task has runs of them."""
    cuts = [(task, cut) for task, runs in all_runs if (cut := cut_of(task, runs, "random")) is not None]
    if not cuts:
        return []
    mean = statistics.mean(cut for _, cut in cuts)
    ends = " to ".join(f"{_difference(cut)} ({task.title})" for task, cut in _ends(cuts))
    return [
        f"Control: compared with x alone, a biLM of random weights leaves {_difference(mean)} on average"
        f"{_of(len(cuts), all_runs)}, from {ends}."
    ]


def _vectors_line(all_runs: AllRuns) -> list[str]:
    """Return what static vectors bring in place of ELMo, and what ELMo adds to them; nothing without runs of them.

    What it adds: without the tasks on which the networks had different weights of `en_mini`.
    """
    cuts = [(task, cut_of(task, runs, "vectors"), cut_of(task, runs)) for task, runs in all_runs]
    found = [(task, vectors, elmo) for task, vectors, elmo in cuts if vectors is not None and elmo is not None]
    if not found:
        return []
    mean, over = 100 * statistics.mean(vectors for _, vectors, _ in found), _of(len(found), all_runs)
    line = f"Static vectors (floret) of Wikipedia, in x, remove {mean:.0f} % of the errors{over}."
    if ahead := [task.title for task, vectors, elmo in found if vectors > elmo]:
        line += f" They have the higher mean on {'; '.join(ahead)}."
    same = [(task, runs) for task, runs in all_runs if of_same_weights(runs, WITH_VECTORS)]
    added = [(task, cut) for task, runs in same if (cut := cut_of(task, runs, *BESIDE_VECTORS)) is not None]
    if added:
        mean = 100 * statistics.mean(cut for _, cut in added)
        least, most = _ends(added)
        line += (
            f" ELMo removes {mean:.0f} % of the errors that they leave{_of(len(added), all_runs)}, from "
            f"{_named(least)} to {_named(most)}. The paper's x had static vectors too."
        )
    return [line]


def _speed_line(project: Path) -> list[str]:
    """Return how much [x; ELMo] reads in the time of x alone; nothing if that was not measured."""
    shares = []
    for task in TASKS:
        speeds = [read_speed(project, task, network) for network in (BASELINE, ELMO)]
        if speeds[0] is not None and speeds[1] is not None:
            shares.append((task, speeds[1].words_per_second / speeds[0].words_per_second))
    if not shares:
        return []
    ends = dict.fromkeys(map(_named, _ends(shares)))
    return [f"Speed of [x; ELMo], as a share of that of x alone: {' to '.join(ends)}; two threads, without caches."]


def _of(number: int, all_runs: AllRuns) -> str:
    """Return of how many tasks a mean is; "" if it is of all that have runs."""
    if number == sum(bool(runs.complete) for _, runs in all_runs):
        return ""
    return f" over {number} task{'s' * (number > 1)}"


def _difference(cut: float) -> str:
    if round(100 * cut) == 0:
        return "as many errors"
    return f"{100 * abs(cut):.0f} % {'fewer' if cut > 0 else 'more'} errors"


def _ends(figures: Sequence[tuple[Task, float]]) -> tuple[tuple[Task, float], tuple[Task, float]]:
    """Return the task with the least figure, and that with the largest one."""
    least, most = (choose(figures, key=lambda one: one[1]) for choose in (min, max))
    return least, most


def _named(figure: tuple[Task, float]) -> str:
    task, share = figure
    return f"{100 * share:.0f} % ({task.title})"
