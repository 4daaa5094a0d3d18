"""Tables of docs/results.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from ..runs.experiments import BASELINE, ELMO, MIDI, NETWORKS, Task
from ..runs.facts_of_runs import bilm_mark
from .run_files import AllRuns, Run, Runs
from .task_notes import PAPER_TASKS

WITH_VECTORS = {"vectors": "vectors", ELMO: "ELMo", "vectors_elmo": "both"}
DAGGER = "†"
OF_BILMS = {ELMO: "en_mini", MIDI: "en_midi"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def anchor_of(title: str) -> str:
    """Return the anchor of a heading, as GitHub and Sphinx name it."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def percent(share: float) -> str:
    """Return a share as a number of percent. share: between 0 and 1."""
    return f"{100 * share:.1f}"


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


# Student's t by degrees of freedom, two-sided, 5 %; for more than five, that of five
_STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57}


def student(freedom: int) -> float:
    """Return how many standard errors a difference must have, to be due to chance in one of twenty cases.

    freedom: degrees of freedom, 1 or more.
    """
    return _STUDENT[min(freedom, max(_STUDENT))]


def apart(one: Sequence[float], other: Sequence[float]) -> bool | None:
    """Return whether the means of two networks differ by more than seeds make likely: Student's t-test, 5 %.

    None if there are too few runs to tell.
    """
    if min(len(one), len(other)) < 2:
        return None
    error = math.sqrt(sum(statistics.variance(values) / len(values) for values in (one, other)))
    return abs(statistics.mean(one) - statistics.mean(other)) > student(len(one) + len(other) - 2) * error


def cut_of(task: Task, runs: Runs, network: str = ELMO, than: str = BASELINE) -> float | None:
    """Return how much smaller a network's error is than another's, by the task's first measure on its test part.

    None without runs of both.
    """
    base, values = (values_of(runs.of(name), task) for name in (than, network))
    return error_cut(base, values) if base and values else None


def values_of(runs: Sequence[Run], task: Task) -> list[float]:
    """Return the task's first measure of each run on the test part."""
    test, key = next(iter(task.tests)), task.measures[0].key
    return [run.tests[test][key] for run in runs]


def summary_table(all_runs: AllRuns) -> str:
    """Return a table with a row for each task that has runs of both main networks."""
    rows = []
    for task, runs in all_runs:
        cut = cut_of(task, runs)
        if cut is not None:
            base, elmo = (values_of(runs.of(network), task) for network in (BASELINE, ELMO))
            means = [f"{100 * statistics.mean(values):.1f}" for values in (base, elmo)]
            paper = "" if task.paper is None else f"{task.paper:.1f} %, {PAPER_TASKS[task.name]}"
            seeds = str(len(elmo)) if len(base) == len(elmo) else f"{len(base)} and {len(elmo)}"
            rows.append([task.title, task.measures[0].name, *means, f"{100 * cut:.1f} %", paper, seeds])
    head = [
        "task",
        "measure",
        NETWORKS[BASELINE].title,
        NETWORKS[ELMO].title,
        "error cut",
        "the paper's cut",
        "runs of each",
    ]
    return table(head, rows)


def beside_table(all_runs: AllRuns, networks: Mapping[str, str]) -> str:
    """Return a table of the tasks on which all these networks were tried: means of the test part, and error cuts.

    A task has a dagger if the networks had different weights of `en_mini`.

    networks: what the cut of each is called, by the network's name.

    Returns "" without such a task.
    """
    rows = []
    for task, runs in all_runs:
        values = [values_of(runs.of(network), task) for network in (BASELINE, *networks)]
        if all(values):
            cuts = [cut_of(task, runs, network) for network in networks]
            row = [f"{100 * statistics.mean(of_network):.1f}" for of_network in values]
            row += ["" if cut is None else f"{100 * cut:.1f} %" for cut in cuts]
            title = task.title if of_same_weights(runs, networks) else f"{task.title} {DAGGER}"
            rows.append([title, *row, ", ".join(str(len(of_network)) for of_network in values)])
    titles = [NETWORKS[network].title for network in (BASELINE, *networks)]
    head = ["task", *titles, *(f"cut: {name}" for name in networks.values()), "runs of each"]
    return table(head, rows) if rows else ""


def apart_line(all_runs: AllRuns, one: str, other: str) -> str:
    """Return on which tasks two networks differ by more than seeds make likely; "" without tasks that tell."""
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for task, runs in all_runs:
        values = [values_of(runs.of(network), task) for network in (one, other)]
        if all(values):
            found[apart(*values)].append(task.title)
    if not found[True] and not found[False]:
        return ""
    titles = f"{NETWORKS[one].title} and {NETWORKS[other].title}"
    likely = f"{titles} differ by more than seeds make likely (Student's t-test, 5 %) on"
    parts = [f"{likely} {'; '.join(found[True]) or 'no task'}."]
    parts += [f"They do not on {'; '.join(found[False])}."] if found[False] else []
    parts += [f"There are too few runs to tell on {'; '.join(found[None])}."] if found[None] else []
    return " ".join(parts)


def of_same_weights(runs: Runs, networks: Iterable[str]) -> bool:
    """Return whether all runs of these networks that read `en_mini` had the same weights of it."""
    return len({run.bilm for network in networks for run in runs.of(network)} - {""}) <= 1


def scores_table(task: Task, runs: Runs) -> str:
    """Return a table with a row for each measure and network: mean, spread, relative error cut and number of runs."""
    rows = []
    for test in task.tests:
        for measure in task.measures:
            shown = measure.name if test == "test" else f"{measure.name}, {test}"
            what, trivial = runs.trivial
            if trivial:
                rows.append([shown, f"trivial: {what}", spread([trivial[test][measure.key]]), "", ""])
            base = [run.tests[test][measure.key] for run in runs.of(BASELINE)]
            for name, network in task.networks.items():
                values = [run.tests[test][measure.key] for run in runs.of(name)]
                if values:
                    cut = error_cut(base, values) if name != BASELINE else None
                    shown_cut = "" if cut is None else f"{100 * cut:.1f} %"
                    rows.append([shown, network.title, spread(values), shown_cut, str(len(values))])
    return table(["measure", "network", "test, %: mean ± deviation (range)", "error cut", "runs"], rows)


def costs_table(task: Task, runs: Runs) -> str:
    """Return a table of what each network costs: minutes of training, weights, size and speed.

    Minutes and speed are those of the shortest and of the fastest run: what else a machine does only slows a run down,
    and some runs may have been made on a slower machine.
    """
    rows = []
    for name, network in task.networks.items():
        if of_network := runs.of(name):
            minutes = min(run.minutes for run in of_network)
            speed = max(run.words_per_second for run in of_network)
            size = [f"{of_network[0].parameters:,}", f"{of_network[0].megabytes:.1f}"]
            rows.append([network.title, f"{minutes:.0f}", *size, f"{speed:,}"])
    return table(["network", "minutes of training", "trained parameters", "MB on disk", "words/s"], rows)


def mixes_table(runs: Runs) -> str:
    """Return a table of the mixes of [x; ELMo], means over the runs: softmax weights and gamma. "" without mixes."""
    elmo = runs.of(ELMO)
    rows = []
    for mix in elmo[0].mixes if elmo else ():
        of_runs = [one for run in elmo for one in run.mixes if (one.component, one.place) == (mix.component, mix.place)]
        weights = [statistics.mean(layer) for layer in zip(*(one.weights for one in of_runs))]
        gamma = statistics.mean(one.gamma for one in of_runs)
        rows.append([mix.component, mix.place, ", ".join(f"{weight:.3f}" for weight in weights), f"{gamma:.3f}"])
    return table(["component", "place", "weights of the layers, from 0 on", "gamma"], rows) if rows else ""


def source_lines(workflow: str, runs: Runs, networks: Sequence[str] = (), options: str = "") -> str:
    """Return the command that makes runs, and at which commits, on which machines and with which weights it did.

    networks: that the command is told; empty: it need not be told.
    options: further ones of the command.
    """
    commits = ", ".join(sorted({run.commit for run in runs.complete if run.commit}))
    machines = "; ".join(sorted({run.machine for run in runs.complete}))
    option = f' --vars.networks "{" ".join(networks)}"' if networks else ""
    option += f" {options}" if options else ""
    line = f"`python -m spacy project run {workflow} .{option}`; commit {commits or 'unknown'}; {machines}"
    marks = sorted({run.bilm for run in runs.complete if run.bilm})
    return f"{line}; `en_mini` {', '.join(marks)}." if marks else f"{line}."


def with_earlier_weights(all_runs: AllRuns, network: str) -> list[str]:
    """Return the titles of the tasks on which a network had other weights of en_mini than those of the package."""
    now = bilm_mark()
    return [task.title for task, runs in all_runs if any(run.bilm not in ("", now) for run in runs.of(network))]
