"""The section of docs/results.md on how the biLMs learned, from the files in results/pretraining/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..bilms.measure_bilms import BILMS
from ..bilms.record_run import learning_folder
from ..shared.messages import Messages
from .results_plots import LearningRun, plot_learning
from .results_tables import table
from .run_files import read_json, understood

_READING = """\
Perplexity of 1,000 held-out sentences of Wikipedia during the runs that made the biLMs, from the zero state, by a
softmax over the same 50,000 words. Tokens are those of one direction; `</S>` counts as one. Each run of `en_mini`
begins with the weights of the run before, and the learning rate falls to 0 at the end of each run. In runs 4 and 5,
and in that of `en_midi`, an average of the last weights is scored.
[Pretraining](pretraining.md#how-en_mini-was-trained) has the commands and texts. Of runs 1 and 4 rounded figures were
kept, of runs 2 and 3 the last one. `python -m scripts.bilms.record_run` keeps all evaluations of a run."""


def learning_parts(project: Path, output: Path) -> list[str]:
    """Return the paragraphs of the section; none without records. Draws its plot beside the output.

    Raises CommandError if a file can't be used.
    """
    runs = read_learning(project)
    if not runs:
        return []
    plot = output.with_name(f"{output.stem}_pretraining.png")
    plot_learning(plot, runs)
    return ["### How they learned", _READING, learning_table(runs), f"![perplexity against tokens]({plot.name})"]


def read_learning(project: Path) -> list[LearningRun]:
    """Return the runs on record: those of `en_mini` first, then by the names of their files.

    Raises CommandError if a file can't be used.
    """
    runs = []
    for path in sorted(learning_folder(project).glob("*.json")):
        with understood(path, Messages.LEARNING):
            data = read_json(path)
            points = [(int(tokens), float(perplexity)) for tokens, perplexity in data["evaluations"]]
            bilm, title, machine = (data[name] for name in ("bilm", "title", "machine"))
            if not points or not all(isinstance(text, str) for text in (bilm, title, machine)):
                raise ValueError("no evaluations, or a name that is no text")
            minutes, before = float(data["minutes"]), int(data["tokens_before"])
            runs.append(LearningRun(bilm, title, machine, minutes, before, points))
    return sorted(runs, key=lambda run: (*BILMS, run.bilm).index(run.bilm))


def learning_table(runs: Sequence[LearningRun]) -> str:
    """Return a table with a row for each run."""
    rows = []
    for run in runs:
        tokens, perplexity = run.points[-1]
        numbers = [f"{run.before / 1e6:,.0f}", f"{tokens / 1e6:,.0f}", f"{run.minutes:,.0f}", f"{perplexity:.1f}"]
        rows.append([f"`{run.bilm}`, {run.title}", *numbers, run.machine])
    return table(["run", "million tokens before it", "in it", "minutes", "perplexity at its end", "machine"], rows)
