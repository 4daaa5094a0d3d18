"""Part of docs/results.md: what a user would take instead of the embedded biLM."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from ..runs.experiments import ALTERNATIVES, ELMO, MIDI
from .alternatives import TASK, Alternative, read_alternatives
from .results_plots import plot_costs
from .results_tables import error_cut, source_lines, spread, table
from .run_files import read_runs

_TEXT = """\
What you could train on your own text in place of ELMo: static vectors (floret; spaCy keeps them frozen), the first
weights of x (`spacy pretrain`; they are tuned with the component), or a biLM of the embedded one's sizes. Each had
about half an hour of one core, with the settings of its documentation, and read the first text of the embedded biLM:
Wikipedia of 2015. `spacy pretrain` had numpy multiply its matrices; without that it would have read less. The biLM of
half an hour had AdamW at 0.004, the default at that time. Its minutes contain the evaluation at its end, which took
eight of them. The minutes and words of the embedded biLM are the sums of those in its model card: it was trained on
another machine too, and has also read Wikipedia of 2018 and novels. Minutes are those of one core: an hour of two
cores counts as 120. The embedded biLM also had 7 minutes of a GPU, in which it read 600 million of its words.
`en_midi` had 9 minutes of a GPU, and read 450 million words. Words read are each program's own count, with
repetitions.

The corpus is Broad Twitter, and x is the same in all rows. x alone, x with static vectors, [x; ELMo] and the same with
`en_midi` are the runs of its section above. Words per second were measured with two threads, the networks in turns,
ELMo's cache off. Thinc multiplies matrices with one thread."""


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
        source_lines("alternatives", own),
        _TEXT,
        costs(found),
        best(found),
        picture,
    ]


def best(found: Sequence[Alternative]) -> str:
    """Return which network has the best scores, and what to take for a corpus like this."""
    name, larger, elmo = TASK.measures[0].name, TASK.networks[MIDI].title, TASK.networks[ELMO].title
    first = _best(found)
    lines = [f"The best mean {name} of these is that of {first.title}."]
    if first.title == larger:
        first = _best([one for one in found if one.title != larger])
        lines.append(f"Of the others, {first.title} has the best one.")
    if first.title != elmo:
        lines.append(
            f"So for a corpus like this take {first.title}, unless it may be as large and as slow as `en_midi`. ELMo "
            "can stand beside static vectors; the section of this corpus has both together."
        )
    return " ".join(lines)


def _best(found: Sequence[Alternative]) -> Alternative:
    return max(found, key=lambda one: statistics.mean(one.scores))


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
