"""Tables of docs/results.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from ..runs.experiments import BASELINE, ELMO, MIDI, NETWORKS, Task
from ..runs.facts_of_runs import bilm_mark
from .figures import apart, error_cut, mean_percent, shown_cut, spread
from .run_files import AllRuns, Run, Runs
from .task_notes import PAPER_TASKS

ALL_TASKS = "All tasks"  # the heading of the tables of all tasks
BESIDE_VECTORS = ("vectors_elmo", "vectors")  # the two networks that differ in ELMo and both have static vectors
WITH_VECTORS = {"vectors": "vectors", ELMO: "ELMo", "vectors_elmo": "both"}
DAGGER = "†"
_PAIRS = (  # networks that a reader compares
    (ELMO, BASELINE),
    (ELMO, "random"),
    (ELMO, "vectors"),
    BESIDE_VECTORS,
    ("vectors_elmo", ELMO),
    (MIDI, ELMO),
)
OF_BILMS = {ELMO: "en_mini", MIDI: "en_midi"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    Raises ValueError if a row has more or fewer cells than the head, or if a cell would end the row or itself.
    """
    rows = list(rows)
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"a row has {len(row)} cells, the table {len(head)}: {row[0]!r}")
        for cell in row:
            if "\n" in cell or "|" in cell.replace("\\|", ""):
                raise ValueError(f"a text has a line end or a |: {cell[:80]!r}")
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def anchor_of(title: str) -> str:
    """Return the anchor of a heading, as GitHub and Sphinx name it."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def cut_of(task: Task, runs: Runs, network: str = ELMO, than: str = BASELINE) -> float | None:
    """Return how much smaller a network's error is than another's, by the task's first measure on its test part.

    None without runs of both.
    """
    return error_cut(*(values_of(runs.of(name), task) for name in (than, network)))


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
            values = [values_of(runs.of(network), task) for network in (BASELINE, ELMO)]
            beside = shown_cut(cut_of(task, runs, *BESIDE_VECTORS))
            paper = "" if task.paper is None else f"{task.paper:.1f} %, {PAPER_TASKS[task.name]}"
            seeds = ", ".join(str(number) for number in dict.fromkeys(map(len, values)))
            measure = task.measures[0].name
            likely = {True: "yes", False: "no", None: ""}[apart(*values)]
            rows.append([task.title, measure, *map(mean_percent, values), shown_cut(cut), likely, beside, paper, seeds])
    titles = [NETWORKS[network].title for network in (BASELINE, ELMO)]
    cuts = [
        "error cut",
        "beyond seeds",
        "error cut, static vectors in both",
        "the paper's cut, static vectors in both",
    ]
    return table(["task", "measure", *titles, *cuts, "runs of each"], rows)


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
            cuts = [shown_cut(cut_of(task, runs, network)) for network in networks]
            title = task.title if of_same_weights(runs, networks) else f"{task.title} {DAGGER}"
            numbers = ", ".join(str(len(of_network)) for of_network in values)
            rows.append([title, *map(mean_percent, values), *cuts, numbers])
    titles = [NETWORKS[network].title for network in (BASELINE, *networks)]
    head = ["task", *titles, *(f"cut: {name}" for name in networks.values()), "runs of each"]
    return table(head, rows) if rows else ""


def apart_line(what: str, pairs: Iterable[tuple[str, Sequence[float], Sequence[float]]]) -> str:
    """Return which pairs differ by more than seeds make likely; "" if none has enough runs to tell.

    what: the pairs have in common, as in "two networks differ".
    pairs: a name, and the scores of the runs of two networks.
    """
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for name, one, other in pairs:
        found[apart(one, other)].append(name)
    if not found[True] and not found[False]:
        return ""
    words = {True: "yes", False: "no", None: "There are too few runs to tell"}
    answers = [f"{word} for {'; '.join(found[answer])}." for answer, word in words.items() if found[answer]]
    first, *others = answers
    others = [other[0].upper() + other[1:] for other in others]
    return " ".join([f"Whether {what} by more than seeds make likely (Student's t-test, 5 %): {first}", *others])


def seeds_lines(task: Task, runs: Runs) -> list[str]:
    """Return which networks differ by more than seeds make likely, in the first measure: a line for each test file."""
    lines = []
    for test in task.tests:
        measure = task.measures[0]
        scores = {name: [run.tests[test][measure.key] for run in runs.of(name)] for name in task.networks}
        pairs = [
            (f"{task.networks[one].title} and {task.networks[other].title}", scores[one], scores[other])
            for one, other in _PAIRS
            if scores.get(one) and scores.get(other)
        ]
        shown = measure.name if test == "test" else f"{measure.name}, {test},"
        if line := apart_line(f"two networks differ in {shown}", pairs):
            lines.append(line)
    return lines


def ends_line(runs: Runs) -> str:
    """Return which runs of the main networks were still at their best when they ended; "" if none, or if unknown."""
    found = []
    for network in (BASELINE, ELMO):
        curves = [run.curve for run in runs.of(network) if run.curve]
        last = sum(max(score for _, score in curve) == curve[-1][1] for curve in curves)
        if last:
            found.append(f"{last} of {len(curves)} runs of {NETWORKS[network].title}")
    if not found:
        return ""
    return f"At the last evaluation, {' and '.join(found)} had their best score: they might gain by longer training."


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
                    rows.append([shown, network.title, spread(values), shown_cut(cut), str(len(values))])
    return table(["measure", "network", "test, %: mean ± deviation (range)", "error cut", "runs"], rows)


def costs_table(task: Task, runs: Runs) -> str:
    """Return a table of what each network costs, and at which commits its runs were made.

    Minutes of training and words a second are ranges over the runs: machines differ, and do other work.
    """
    rows = []
    for name, network in task.networks.items():
        if of_network := runs.of(name):
            minutes, speeds = ([getattr(run, of) for run in of_network] for of in ("minutes", "words_per_second"))
            size = [f"{of_network[0].parameters:,}", f"{of_network[0].megabytes:.1f}"]
            commits = ", ".join(sorted({run.commit for run in of_network if run.commit}))
            rows.append([network.title, _range(minutes), *size, _range(speeds), commits])
    return table(["network", "minutes of training", "trained parameters", "MB on disk", "words/s", "commits"], rows)


def _range(values: Sequence[float]) -> str:
    ends = [f"{end:,.0f}" for end in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


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


def source_lines(
    workflow: str, runs: Runs, networks: Sequence[str] = (), options: str = "", with_commits: bool = True
) -> str:
    """Return the command that makes runs, and at which commits, on which machines and with which weights it did.

    networks: that the command is told; empty: it need not be told.
    options: further ones of the command.
    with_commits: false: a table has them.
    """
    commits = ", ".join(sorted({run.commit for run in runs.complete if run.commit}))
    machines = "; ".join(sorted({run.machine for run in runs.complete}))
    option = f' --vars.networks "{" ".join(networks)}"' if networks else ""
    option += f" {options}" if options else ""
    line = f"`python -m spacy project run {workflow} .{option}`; "
    line += f"commit {commits or 'unknown'}; {machines}" if with_commits else machines
    marks = sorted({run.bilm for run in runs.complete if run.bilm})
    return f"{line}; `en_mini` {', '.join(marks)}." if marks else f"{line}."


def with_earlier_weights(all_runs: AllRuns, network: str) -> list[str]:
    """Return the titles of the tasks on which a network had other weights of en_mini than those of the package."""
    now = bilm_mark()
    return [task.title for task, runs in all_runs if any(run.bilm not in ("", now) for run in runs.of(network))]
