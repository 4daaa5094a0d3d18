"""The section of docs/results.md on how the biLMs learned, from the files in results/pretraining/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .learning_runs import LearningRun, read_learning
from .results_plots import plot_learning
from .results_tables import table

_READING = """\
Perplexity during the runs that made the biLMs: of 1,000 sentences that are spread over the held-out text of Wikipedia,
from the zero state, by a softmax over the same 50,000 words. The section above has those of all 20,000 sentences and of
the first 1,000, for the biLMs as they are shipped. Tokens are those of one direction; `</S>` counts as one. A run
begins with the weights of the biLM's run before it, and ends at a learning rate of 0. "Averaged": an average of the
last weights was scored. If only a few figures of a run were kept, the picture has only these.
[Pretraining](pretraining.md#how-en_mini-was-trained) has the commands and tells what the texts are; those of runs 2 and
3 were not kept word for word. `python -m scripts.bilms.record_run` keeps the evaluations of a run."""


def learning_parts(project: Path, output: Path) -> list[str]:
    """Return the paragraphs of the section; none without records. Draws its plot beside the output.

    Raises CommandError if a file can't be used.
    """
    runs = read_learning(project)
    if not runs:
        return []
    plot = output.with_name(f"{output.stem}_pretraining.png")
    plot_learning(plot, runs)
    return ["## How the biLMs learned", _READING, learning_table(runs), f"![perplexity against tokens]({plot.name})"]


def learning_table(runs: Sequence[LearningRun]) -> str:
    """Return a table with a row for each run."""
    rows = []
    for run in runs:
        tokens, perplexity = run.points[-1]
        numbers = [f"{run.before / 1e6:,.0f}", f"{tokens / 1e6:,.0f}", f"{run.minutes:,.0f}", f"{perplexity:.1f}"]
        averaged = "yes" if run.averaged else "no"
        rows.append([f"`{run.bilm}`, {run.title}", run.text, *numbers, averaged, run.machine])
    numbers = ["million tokens read before", "million tokens read in this run", "minutes", "perplexity at its end"]
    return table(["run", "text", *numbers, "averaged", "machine"], rows)
