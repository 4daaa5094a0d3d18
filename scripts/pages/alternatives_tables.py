"""Part of docs/results.md: what a user would take instead of the embedded biLM."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from ..runs.experiments import ALTERNATIVES, ELMO
from .alternatives import TASK, VECTORS, Alternative, read_alternatives
from .results_plots import plot_costs
from .results_tables import apart, error_cut, source_lines, spread, table
from .run_files import read_runs

_TEXT = """\
What you could train on your own text in place of ELMo: static vectors (floret; spaCy keeps them frozen), initial
weights of x (`spacy pretrain`; they are tuned with the component), or a biLM of the embedded one's sizes. Each had
about half an hour of one core, with the settings of its documentation, and read the first text of the embedded biLM:
Wikipedia of 2015. `spacy pretrain` had numpy multiply its matrices; without that it would have read less. The biLM of
half an hour had AdamW at 0.004, the default at that time. Its minutes contain the evaluation at its end, which took
eight of them. The minutes and words of the embedded biLM are the sums of those in its model card: it was trained on
another machine too, and has also read Wikipedia of 2018 and novels. Minutes are those of one core: an hour of two
cores counts as 120. The embedded biLM also had 7 minutes of a GPU, in which it read 600 million of its words.
`en_midi` had 9 minutes of a GPU, and read 450 million words. Words read are each program's own count, with
repetitions.

The corpus is Broad Twitter, and x is the same in all rows, but for the vectors. All networks but those of `spacy
pretrain` and the half-hour biLM are the runs of [Broad Twitter](#entities-broad-twitter). Words per second were
measured with two threads, the networks in turns, ELMo's caches off. Thinc multiplies matrices with one thread. `spacy
pretrain` changes the weights of x alone, and the half-hour biLM those of [x; ELMo], so their speeds are the same."""


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
        source_lines("alternatives", own, options="--vars.text FILE"),
        _TEXT,
        costs(found),
        advice(found),
        picture,
    ]


def advice(found: Sequence[Alternative]) -> str:
    """Return which network has the best scores, how vectors and ELMo compare, and what to take for such a corpus."""
    name, networks = TASK.measures[0].name, {one.name: one for one in found}
    first = _best(found)
    lines = [f"The best mean {name} is that of {first.title}."]
    vectors, elmo = networks.get(VECTORS), networks.get(ELMO)
    if vectors is not None and elmo is not None:
        lines.append(_compared(vectors, elmo))
        speeds = (vectors.words_per_second, elmo.words_per_second)
        if speeds[0] and speeds[1] and not (apart(vectors.scores, elmo.scores) and _best([vectors, elmo]) is elmo):
            times = f"{speeds[0] / speeds[1]:.1f} times as many words a second as {elmo.title}"
            lines.append(f"So if speed counts, take {vectors.title}, which reads {times}.")
    lines.append("If the score counts, take the best one. The tables at the top of this page compare other tasks.")
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


def _best(found: Sequence[Alternative]) -> Alternative:
    return max(found, key=_mean)


def costs(found: Sequence[Alternative]) -> str:
    """Return a table with a row for each network. found: the first one is what the error cuts are relative to."""
    rows = []
    for one in found:
        minutes, words = one.training or (None, None)
        cut = error_cut(found[0].scores, one.scores)
        rows.append(
            [
                one.title,
                "" if minutes is None else f"{minutes:,.0f}",
                "" if words is None else f"{words / 1e6:,.0f}",
                spread(one.scores),
                "" if cut is None or one is found[0] else f"{100 * cut:.1f} %",
                f"{one.megabytes:.1f}",
                "" if one.words_per_second is None else f"{one.words_per_second:,}",
            ]
        )
    score = f"test {TASK.measures[0].name}, %"
    return table(
        ["network", "minutes of training", "million words read", score, "error cut", "MB on disk", "words/s"], rows
    )
