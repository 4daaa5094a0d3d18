"""Part of docs/results.md: single changes of [x; ELMo], and shares of the training part."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..runs.ablations import ABLATIONS, CHANGES, SHARES, UPDATES, share_name
from ..runs.experiments import BASELINE, ELMO, NETWORKS, Task
from .figures import mean_percent, percent, student
from .results_plots import plot_shares
from .results_tables import anchor_of, source_lines, table, values_of, with_earlier_weights
from .run_files import AllRuns, Run, Runs, read_runs

_ONE_SEED = (0,)
_INTRODUCTION = f"""\
- [x; ELMo] has ELMo at the input of the encoder, and for newswire at its output too. It learns gamma and the weights of
  the layers, without an l2 and without a layer norm. The biLM is frozen. Each other network differs in what it is named
  for.
- One run of each network, of {UPDATES:,} updates. Of [x; ELMo] there may be more; then its row is the mean of them.
- Each score is that of a run's best evaluation on the development part, because the test part is not for choosing. So
  the scores are a little too good.
- Difference: of the first measure, from [x; ELMo] of the same table. Another seed changes a score too. If there are
  several runs of [x; ELMo], the line above the table tells how much.
- A mix learns both gamma and the weights of the layers, or neither. To see what gamma alone brings, compare the mean of
  the layers without gamma with an l2 of 50, which nearly gives the mean.
- The loss of a component in spaCy is a sum over the batch, and the paper's a mean over examples. So an l2 of 0.001 is
  weaker here than the paper's lambda of 0.001. The same strength is the paper's lambda times the number of examples in
  a batch."""
_SHARES = "Shares of the training part. The scores, in %, are those of the development part again:"
_NOTES = {
    "ablations_newswire": "An update sees as many words of a small share as of all. So a small share is read more "
    "often: 114 times at 1 %, and 1.1 times at 100 %.",
    "ablations_ewt": "The parsers also learn labels that occur once (`min_action_freq` is 1); the task itself leaves "
    "out those that occur fewer than 30 times.",
}


class LeastShare(NamedTuple):
    """With how little of the training part ELMo is as good as x alone with all of it.

    task: one of `ablations.py`.
    share: of the training part, in %.
    elmo: the score of [x; ELMo] with it, of one run; between 0 and 1.
    alone: the mean score of x alone with all of it.
    """

    task: Task
    share: int
    elmo: float
    alone: float


def ablation_parts(project: Path, output: Path, seeds: Sequence[int], all_runs: AllRuns = ()) -> list[str]:
    """Return the paragraphs on the tasks of `ablations.py` that have runs, and draw their plots beside the output.

    seeds: of [x; ELMo], from which the differences are; the other networks have one run.
    all_runs: of the tasks that they are like.

    Raises CommandError if a result can't be used.
    """
    parts = []
    for task in ABLATIONS:
        runs = _of_one_biLM(read_runs(project, task, seeds))
        if runs.complete:
            parts += [f"### {task.title}", source_lines("ablations", runs)]
            if any(runs.of(name) for name in CHANGES):
                parts += [*_doubt(task, runs), changes_table(task, runs)]
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
                difference = f"{round(100 * (own - statistics.mean(elmo)), 1) + 0.0:+.1f}"  # no "-0.0"
            minutes = min(run.minutes for run in of_network)
            rows.append([title, *_scores(task, of_network), difference, f"{minutes:.0f}"])
    return table(["network", *(f"{measure.name}, %" for measure in task.measures), "difference", "minutes"], rows)


def _doubt(task: Task, runs: Runs) -> list[str]:
    """Return which networks differ from [x; ELMo] by more than seeds make likely, by Student's t-test.

    The deviation of each network is taken to be that of the runs of [x; ELMo].
    """
    values = values_of(runs.of(ELMO), task)
    if len(values) < 2:
        return ["One run of [x; ELMo]: how much another seed changes a score was not measured for this table."]
    deviation = statistics.stdev(values)
    least, of_two = (100 * student(len(values) - 1) * deviation * math.sqrt(1 + 1 / n) for n in (len(values), 1))
    changed = {name: values_of(runs.of(name), task) for name in (BASELINE, *CHANGES)}
    far = [
        task.networks[name].title
        for name, own in changed.items()
        if own and 100 * abs(statistics.mean(own) - statistics.mean(values)) >= least
    ]
    apart = "these networks differ" if len(far) > 1 else "this network differs"
    verdict = f"Only {apart} from [x; ELMo] by more: {'; '.join(far)}." if far else "No network differs by more."
    return [
        f"The {len(values)} runs of [x; ELMo] have a deviation of {100 * deviation:.2f}; that of the other networks is "
        f"taken to be the same. Then another seed alone makes one run differ from their mean by {least:.1f} or more in "
        f"one of twenty cases, and two single runs by {of_two:.1f}. {verdict}"
    ]


def shares_table(task: Task, runs: Runs) -> str:
    """Return a table of the first measure with a row for each share of the training part."""
    rows = []
    for share in (*SHARES, 100):
        values = [values_of(runs.of(share_name(name, share)), task) for name in (BASELINE, ELMO)]
        if any(values):
            rows.append([f"{share} %", *map(mean_percent, values)])
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


def least_shares(project: Path, all_runs: AllRuns) -> list[LeastShare]:
    """Return, for each task, the least share of the training part with which ELMo is as good as x alone with all of it.

    x alone is trained to its end. Tasks without such a share, or without the runs, are left out.

    Raises CommandError if a result can't be used.
    """
    found = []
    for task in ABLATIONS:
        runs, alone = read_runs(project, task, _ONE_SEED), trained_to_the_end(task, all_runs, BASELINE)
        for share in (*SHARES, 100):
            values = values_of(runs.of(share_name(ELMO, share)), task)
            if alone is not None and values and values[0] >= alone:
                found.append(LeastShare(task, share, values[0], alone))
                break
    return found


def _to_the_end(task: Task, all_runs: AllRuns) -> list[str]:
    alone, elmo = (trained_to_the_end(task, all_runs, network) for network in (BASELINE, ELMO))
    if alone is None or elmo is None:
        return []
    return [
        f"These runs end after {UPDATES:,} updates, before the networks have learned all that is in a large share. If "
        f"they are trained to their ends on the whole part, x alone has {percent(alone)}, and [x; ELMo] "
        f"{percent(elmo)} (development part; means over the runs of [the task](#{anchor_of(task.title)}), whose "
        "section names their weights of `en_mini`)."
    ]


def _scores(task: Task, runs: Sequence[Run]) -> list[str]:
    """Return the mean of each measure over runs."""
    test = next(iter(task.tests))
    return [mean_percent([run.tests[test][measure.key] for run in runs]) for measure in task.measures]
