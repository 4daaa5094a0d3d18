"""Part of docs/results.md: what a user would take instead of the embedded biLM."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from ..runs.experiments import ALTERNATIVES, ELMO
from .alternatives import SHORT, TASK, VECTORS, Alternative, read_alternatives, sources
from .figures import apart, error_cut, shown_cut, spread
from .results_plots import plot_costs
from .results_tables import ALL_TASKS, anchor_of, source_lines, table
from .run_files import read_runs

_TEXT = """\
What you could train on your own text in place of ELMo: static vectors (floret; spaCy keeps them frozen), initial
weights of x (`spacy pretrain`; they are tuned with the component, as its documentation says), or a biLM of half an
hour. Each had about half an hour of one core, with the settings of its documentation, and read the first text of the
embedded biLM: Wikipedia of 2015. `spacy pretrain` had numpy multiply its matrices; without that it would have read
less. The biLM of half an hour has [LSTM 512](pretraining.md#which-size); its minutes contain the evaluation at its end,
which took eight of them. The minutes and words of the embedded biLM are the sums of [its runs](#how-the-bilms-learned):
it has also read Wikipedia of 2018 and novels. Minutes are those of one core: an hour of two cores counts as 120. The
embedded biLM also had 7 minutes of a GPU, in which it read 600 million of its words. `en_midi` had 9 minutes of a GPU
and none of a core. Words read are each program's own count, with repetitions. Machines had other processors of the same
kind: floret a Zen 4, the half-hour biLM a Zen 5.

The corpus is Broad Twitter, and x is the same in all rows, but for the vectors. All networks but those of `spacy
pretrain` and the half-hour biLM are the runs of [Broad Twitter](#entities-broad-twitter). Words per second were
measured with two threads, the networks in turns, ELMo's caches off. Thinc multiplies matrices with one thread, so the
second thread helps ELMo alone. `spacy pretrain` changes the weights of x alone, so its speed is the same."""


def alternatives_parts(project: Path, output: Path, seeds: Sequence[int]) -> list[str]:
    """Return the paragraphs on the alternatives, and draw their plot beside the output. [] without runs of theirs.

    Raises CommandError if a result can't be used.
    """
    own = read_runs(project, ALTERNATIVES, seeds)
    if not own.complete:
        return []
    found = read_alternatives(project, seeds)
    plot = output.with_name(f"{output.stem}_alternatives.png")
    plot_costs(plot, TASK, found)
    picture = f"![{TASK.measures[0].name} against size and speed]({plot.name})"
    return [
        "## What you would take instead",
        " ".join([source_lines("alternatives", own, options="--vars.text FILE"), *sources(project)]),
        _TEXT,
        costs(found),
        advice(found),
        picture,
    ]


def advice(found: Sequence[Alternative]) -> str:
    """Return which network has the best scores, how vectors and ELMo compare, and what to take for such a corpus."""
    name, networks = TASK.measures[0].name, {one.name: one for one in found}
    first, *others = sorted(found, key=_mean, reverse=True)
    lines = [f"The best mean {name} is that of {first.title}."]
    if alike := [one.title for one in others if apart(first.scores, one.scores) is False]:
        lines.append(f"The seeds alone may put it before {' and '.join(alike)}.")
    lines.append(f"If the score counts, take {'one of these' if alike else 'it'}.")
    vectors, elmo, short = (networks.get(one) for one in (VECTORS, ELMO, SHORT))
    if vectors is not None and elmo is not None:
        lines.append(_compared(vectors, elmo))
        speeds = (vectors.words_per_second, elmo.words_per_second)
        if speeds[0] and speeds[1] and not (apart(vectors.scores, elmo.scores) and _mean(elmo) > _mean(vectors)):
            times = f"{speeds[0] / speeds[1]:.1f} times as many words a second as {elmo.title}"
            lines.append(f"So if speed counts, take {vectors.title}, which reads {times}.")
    if vectors is not None and short is not None:
        lines.append(f"For a text of your own and half an hour: {_compared(vectors, short)}")
    lines.append(f"The tables of [all tasks](#{anchor_of(ALL_TASKS)}) compare the others.")
    return " ".join(lines)


def _compared(one: Alternative, other: Alternative) -> str:
    """Return which of two networks is better, if that is hardly due to the seeds."""
    better, worse = sorted((one, other), key=_mean, reverse=True)
    points = f"{100 * (_mean(better) - _mean(worse)):.1f} points"
    differ = apart(one.scores, other.scores)
    if differ is None:
        return f"There are too few runs to compare {one.title} and {other.title}."
    if differ:
        return f"{better.title} is {points} better than {worse.title}."
    return f"{better.title} is {points} better than {worse.title}, which may be due to the seeds."


def _mean(one: Alternative) -> float:
    return statistics.mean(one.scores)


def costs(found: Sequence[Alternative]) -> str:
    """Return a table with a row for each network. found: the first one is what the error cuts are relative to."""
    rows = []
    for one in found:
        minutes, words = one.training or (None, None)
        cut = None if one is found[0] else error_cut(found[0].scores, one.scores)
        rows.append(
            [
                one.title,
                f"{minutes:,.0f}" if minutes else "",
                "" if words is None else f"{words / 1e6:,.0f}",
                spread(one.scores),
                shown_cut(cut),
                f"{one.megabytes:.1f}",
                "" if one.words_per_second is None else f"{one.words_per_second:,}",
            ]
        )
    score = f"test {TASK.measures[0].name}, %"
    return table(
        ["network", "minutes of training", "million words read", score, "error cut", "MB on disk", "words/s"], rows
    )
