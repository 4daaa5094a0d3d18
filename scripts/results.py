"""Write docs/results.md and its plots from the metrics of the runs that are there, and name those that are missing.

python scripts/results.py --seeds "0 1 2"
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import spacy
import typer
from command import run_command
from experiments import TASKS, Task
from messages import Messages
from results_plots import plot_mixes, plot_scores
from results_tables import minutes_table, mixes_table, scores_table
from run_files import Run, Runs, read_runs
from train_runs import seeds_of

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing
from spacy_elmo.pipeline.mixes import LearnedMix, learned_mixes

_INTRODUCTION = """\
# Results

`python -m spacy project run results` writes this page from the metrics of the runs; do not edit it by hand.

Each network was chosen on the development part during its training, and scored once on the test part. The networks of a
task differ only in ELMo. The biLM with random weights shows what the architecture gives without pretraining.

- Deviation: the standard deviation of a sample.
- Error cut: the share of the baseline's errors that is gone, 1 - (1 - F) / (1 - F of the baseline), of the means.
- Minutes: on this machine, which may have done other work at the same time."""


def task_page(project: Path, task: Task, runs: Runs, output: Path) -> list[str]:
    """Return the paragraphs on a task, and draw its plots beside the output."""
    parts = [f"## {task.title}"]
    if runs.complete:
        plot = output.with_name(f"{output.stem}_{task.name}.png")
        plot_scores(plot, task, runs)
        parts += [scores_table(task, runs), minutes_table(task, runs), f"![{task.title}]({plot.name})"]
        parts += _mixes_part(task, runs, output)
    if not runs.complete:
        parts.append("There was no run of this task when this page was written.")
    elif runs.missing:
        listed = "\n".join(f"- `{path.relative_to(project).as_posix()}`" for path in runs.missing)
        parts.append(f"Missing when this page was written:\n\n{listed}")
    return [part for part in parts if part]


def _mixes_part(task: Task, runs: Runs, output: Path) -> list[str]:
    mixes: list[tuple[Run, Sequence[LearnedMix]]] = []
    for run in runs.complete:
        if run.model is not None and (of_run := learned_mixes(spacy.load(run.model))):
            mixes.append((run, of_run))
    if not mixes:
        return []
    plot = output.with_name(f"{output.stem}_{task.name}_weights.png")
    plot_mixes(plot, mixes)
    return ["What the mixes learned:", mixes_table(mixes), f"![weights of {task.title}]({plot.name})"]


def write_results(project: Path, output: Path, seeds: Sequence[int]) -> list[Path]:
    """Write the page and its plots, and return the files that were missing. Raises CommandError if there is no run."""
    runs = {task: read_runs(project, task, seeds) for task in TASKS}
    missing = [path for of_task in runs.values() for path in of_task.missing]
    if not any(of_task.complete for of_task in runs.values()):
        raise CommandError(Messages.NO_METRICS.format(path=project / "metrics"))
    output.parent.mkdir(parents=True, exist_ok=True)
    parts = [_INTRODUCTION]
    for task in TASKS:
        parts += task_page(project, task, runs[task], output)
    with replacing(output, CommandError) as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return missing


def main(
    project: Annotated[Path, typer.Argument(help="Folder with training and metrics")] = Path("."),
    output: Annotated[Path, typer.Option(help="The page; plots are put beside it")] = Path("docs/results.md"),
    seeds: Annotated[str, typer.Option(help="Separated by blanks")] = "0 1 2",
) -> None:
    """Write the page of results."""
    missing = write_results(project, output, seeds_of(seeds))
    print(f"wrote {output}")
    for path in missing:
        print(f"missing: {path}")


if __name__ == "__main__":
    run_command(main)
