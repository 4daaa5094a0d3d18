"""Parts of docs/results.md: single changes of [x; ELMo], shares of the training part, and how soon ELMo learns."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..runs.ablations import ABLATIONS, CHANGES, SHARES, UPDATES, share_name
from ..runs.experiments import BASELINE, ELMO, NETWORKS, Task
from .results_plots import plot_shares
from .results_tables import anchor_of, source_lines, student, table, values_of, with_earlier_weights
from .run_files import AllRuns, Run, Runs, read_runs

_ONE_SEED = (0,)
_SEEDS = (0, 1, 2)  # of [x; ELMo], from which the differences are; the others have one run
_INTRODUCTION = f"""\
- One run of each network, of {UPDATES:,} updates. Of [x; ELMo] there may be more; then its row is the mean of them.
- Each score is that of a run's best evaluation on the development part, because the test part is not for choosing. So
  the scores are a little too good.
- Difference: of the first measure, from [x; ELMo] of the same table. Another seed changes a score too. If there are
  several runs of [x; ELMo], the line below the table tells how much. Else that was not measured here.
- A mix learns both gamma and the weights of the layers, or neither. To see what gamma alone brings, compare the mean of
  the layers without gamma with an l2 of 50, which nearly gives the mean.
- The l2 is 0 if a row names none. The loss of a component in spaCy is a sum over the batch, and the paper's a mean over
  examples. So an l2 of 0.001 is weaker here than the paper's lambda of 0.001."""
_SHARES = "Shares of the training part. The scores, in %, are those of the development part again:"
_NOTES = {
    "ablations_newswire": "An update sees as many words of a small share as of all. So a small share is read more "
    "often: 114 times at 1 %, and 1.1 times at 100 %.",
    "ablations_ewt": "The parsers also learn labels that occur once (`min_action_freq` is 1); the task itself leaves "
    "out those that occur fewer than 30 times.",
}


class Pace(NamedTuple):
    """How soon two networks learn, in updates, as means over runs.

    alone: until x alone has its best score on the development part.
    elmo: until [x; ELMo] has reached that score; None: in no run.
    reached: number of the runs in which it did. Both means are over these, if there are any.
    runs: number of all.
    """

    alone: float
    elmo: float | None
    reached: int
    runs: int


def ablation_parts(project: Path, output: Path, all_runs: AllRuns = ()) -> list[str]:
    """Return the paragraphs on the tasks of `ablations.py` that have runs, and draw their plots beside the output.

    all_runs: of the tasks that they are like.

    Raises CommandError if a result can't be used.
    """
    parts = []
    for task in ABLATIONS:
        runs = _of_one_biLM(read_runs(project, task, _SEEDS))
        if runs.complete:
            parts += [f"### {task.title}", source_lines("ablations", runs)]
            if any(runs.of(name) for name in CHANGES):
                parts += [changes_table(task, runs), *_doubt(task, runs.of(ELMO))]
            if any(runs.of(share_name(ELMO, share)) for share in SHARES):
                plot = output.with_name(f"{output.stem}_{task.name}.png")
                plot_shares(plot, task, runs)
                parts += [_SHARES, shares_table(task, runs), *_to_the_end(task, all_runs), _NOTES[task.name]]
                parts.append(f"![shares of the training part]({plot.name})")
    return ["## One change at a time", _INTRODUCTION, *parts] if parts else []


def with_earlier_ablations(project: Path) -> bool:
    """Return whether [x; ELMo] of these tables had other weights of `en_mini` than those of the package.

    Raises CommandError if a result can't be used.
    """
    return any(with_earlier_weights([(task, read_runs(project, task, _ONE_SEED))], ELMO) for task in ABLATIONS)


def _of_one_biLM(runs: Runs) -> Runs:
    """Leave out the further runs of [x; ELMo] that had other weights of `en_mini` than the first one."""
    mark = {run.bilm for run in runs.of(ELMO)[:1]}
    return runs._replace(complete=[run for run in runs.complete if run.network != ELMO or run.bilm in mark])


def changes_table(task: Task, runs: Runs) -> str:
    """Return a table with a row for each network that was run: its mean scores, and the difference to [x; ELMo]."""
    rows, elmo = [], values_of(runs.of(ELMO), task)
    for name in (BASELINE, ELMO, *CHANGES):
        if of_network := runs.of(name):
            title = task.networks[name].title
            if len(of_network) > 1:
                title += f", mean of {len(of_network)} runs"
            difference = ""
            if elmo and name != ELMO:
                own = statistics.mean(values_of(of_network, task))
                difference = f"{100 * (own - statistics.mean(elmo)):+.1f}"
            minutes = min(run.minutes for run in of_network)
            rows.append([title, *_scores(task, of_network), difference, f"{minutes:.0f}"])
    return table(["network", *(f"{measure.name}, %" for measure in task.measures), "difference", "minutes"], rows)


def _doubt(task: Task, elmo: Sequence[Run]) -> list[str]:
    """Return how large a difference must be, by Student's t-test: of one run from those of ELMo, and of two runs."""
    values = values_of(elmo, task)
    if len(values) < 2:
        return []
    deviation = statistics.stdev(values)
    least, of_two = (100 * student(len(values) - 1) * deviation * math.sqrt(1 + 1 / n) for n in (len(values), 1))
    return [
        f"A difference of less than {least:.1f} can't be told from chance by these runs: one run with another seed "
        f"would differ by that much in one of twenty cases. Two other rows must differ by {of_two:.1f}. (The "
        f"{len(values)} runs of [x; ELMo] have a deviation of {100 * deviation:.2f}; that of the other networks is "
        "taken to be the same.)"
    ]


def shares_table(task: Task, runs: Runs) -> str:
    """Return a table of the first measure with a row for each share of the training part."""
    rows = []
    for share in (*SHARES, 100):
        values = [values_of(runs.of(share_name(name, share)), task) for name in (BASELINE, ELMO)]
        if any(values):
            rows.append([f"{share} %", *(f"{100 * statistics.mean(value):.1f}" if value else "" for value in values)])
    return table(
        ["training part", *(f"{NETWORKS[name].title}, {task.measures[0].name}" for name in (BASELINE, ELMO))], rows
    )


def trained_to_the_end(task: Task, all_runs: AllRuns, network: str) -> float | None:
    """Return what a network that is trained to its end has on the development part: mean of the first measure.

    task: one of `ablations.py`.
    all_runs: of the tasks that they are like, which have the same titles.

    None without such runs.
    """
    key = task.measures[0].key
    runs = [run for other, runs in all_runs if other.title == task.title for run in runs.of(network)]
    scores = [run.dev[key] for run in runs if key in run.dev]
    return statistics.mean(scores) if scores else None


def least_shares(project: Path, all_runs: AllRuns) -> list[tuple[Task, int]]:
    """Return, for each task, the least share of the training part with which ELMo is as good as x alone with all of it.

    In %. x alone is trained to its end. Tasks without such a share, or without the runs, are left out.

    Raises CommandError if a result can't be used.
    """
    found = []
    for task in ABLATIONS:
        runs, alone = read_runs(project, task, _ONE_SEED), trained_to_the_end(task, all_runs, BASELINE)
        for share in (*SHARES, 100):
            values = values_of(runs.of(share_name(ELMO, share)), task)
            if alone is not None and values and values[0] >= alone:
                found.append((task, share))
                break
    return found


def _to_the_end(task: Task, all_runs: AllRuns) -> list[str]:
    alone, elmo = (trained_to_the_end(task, all_runs, network) for network in (BASELINE, ELMO))
    if alone is None or elmo is None:
        return []
    return [
        f"These runs end after {UPDATES:,} updates, before the networks have learned all that is in a large share. If "
        f"they are trained to their ends on the whole part, x alone has {100 * alone:.1f}, and [x; ELMo] "
        f"{100 * elmo:.1f} (development part; means over the runs of [the task](#{anchor_of(task.title)}), whose "
        "section names their weights of `en_mini`)."
    ]


def pace_parts(all_runs: AllRuns) -> list[str]:
    """Return the paragraphs on how many updates x alone needs for its best score, and ELMo for the same one."""
    rows = []
    for task, runs in all_runs:
        if (pace := pace_of(runs)) is not None:
            soon = "never" if pace.elmo is None else f"{pace.elmo:,.0f}"
            rows.append([task.title, f"{pace.alone:,.0f}", soon, f"{pace.reached} of {pace.runs}"])
    if not rows:
        return []
    text = (
        "Updates until x alone has its best score on the development part, and until [x; ELMo] has reached that score; "
        "means over the runs in which it did. The score is the one by which training keeps the best weights; for UD "
        "English EWT it is a weighted mean of tags, morphology and dependencies. The early runs did not record it: "
        "some tasks are missing, or have fewer runs. In the paper, semantic roles took 486 epochs without ELMo and 10 "
        "with it."
    )
    return ["## How soon", text, table(["task", "updates, x alone", "updates, [x; ELMo]", "reached in"], rows)]


def updates_until(curve: Sequence[tuple[int, float]], score: float) -> int | None:
    """Return the first number of updates at which a score is reached, None if it never is."""
    return next((updates for updates, reached in curve if reached >= score), None)


def pace_of(runs: Runs) -> Pace | None:
    """Return how soon the two main networks learn, None without runs that recorded it.

    It is None too if x alone was never better than before its first update.
    """
    elmo = {run.seed: run.curve for run in runs.of(ELMO) if run.curve}
    both = [run for run in runs.of(BASELINE) if run.curve and run.seed in elmo]
    if not both:
        return None
    bests = [max(run.curve, key=lambda point: point[1]) for run in both]  # the first one of the best
    found = [updates_until(elmo[run.seed], best) for run, (_, best) in zip(both, bests)]
    pairs = [(alone, soon) for (alone, _), soon in zip(bests, found) if soon is not None]
    if not pairs:
        return Pace(statistics.mean(alone for alone, _ in bests), None, 0, len(both))
    alone, soon = (statistics.mean(column) for column in zip(*pairs))
    return Pace(alone, soon, len(pairs), len(both)) if alone else None


def _scores(task: Task, runs: Sequence[Run]) -> list[str]:
    """Return the mean of each measure over runs."""
    test = next(iter(task.tests))
    means = [statistics.mean(run.tests[test][measure.key] for run in runs) for measure in task.measures]
    return [f"{100 * mean:.1f}" for mean in means]
