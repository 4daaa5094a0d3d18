"""Write docs/results.md and its plots from the files in results/, and name the runs that are missing.

python -m scripts.pages.results_page --seeds "0 1 2"
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing, writing

from ..runs.ablations import ABLATIONS
from ..runs.experiments import ALTERNATIVES, ELMO, MIDI, NETWORKS, TASKS, Task
from ..runs.facts_of_runs import bilm_mark
from ..runs.train_runs import seeds_of
from ..runs.tuned_tasks import TUNED_TASKS
from ..shared.command import run_command
from ..shared.messages import Messages
from . import page_texts
from .ablation_tables import ablation_parts
from .alternatives_tables import alternatives_parts
from .bilm_tables import bilm_parts
from .inside_tables import inside_parts
from .learning_tables import learning_parts
from .paces import pace_parts
from .read_tables import read_parts
from .results_plots import plot_mixes, plot_scores, plot_summary
from .results_tables import (
    ALL_TASKS,
    DAGGER,
    OF_BILMS,
    WITH_VECTORS,
    anchor_of,
    apart_line,
    beside_table,
    costs_table,
    cut_of,
    ends_line,
    mixes_table,
    scores_table,
    seeds_lines,
    source_lines,
    summary_table,
    values_of,
)
from .run_files import AllRuns, Runs, read_runs, refuse_copies, understood
from .summary_lines import earlier_weights_lines, summary_lines
from .task_notes import DATA
from .tuned_tables import tuned_parts


def summary(project: Path, all_runs: AllRuns, output: Path) -> list[str]:
    """Return the paragraphs of the summary, and draw its plot beside the output."""
    if not _has_summary(all_runs):
        return []
    plot = output.with_name(f"{output.stem}_summary.png")
    plot_summary(plot, all_runs)
    picture = f"![share of the errors that ELMo removes]({plot.name})"
    return [picture, "\n".join(f"- {line}" for line in summary_lines(project, all_runs))]


def tables_of_all_tasks(all_runs: AllRuns) -> list[str]:
    """Return the paragraphs that compare the tasks; none if no task has runs of both main networks."""
    if not _has_summary(all_runs):
        return []
    parts = [f"## {ALL_TASKS}", page_texts.SUMMARY, summary_table(all_runs)]
    if beside := beside_table(all_runs, WITH_VECTORS):
        daggers = page_texts.DAGGERS.format(dagger=DAGGER) if DAGGER in beside else ""
        parts += [page_texts.WITH_VECTORS.format(daggers=daggers).rstrip(), beside, *_apart(all_runs, ELMO, "vectors")]
    if beside := beside_table(all_runs, OF_BILMS):
        parts += [page_texts.OF_BILMS, beside, *_apart(all_runs, MIDI, ELMO)]
    return parts


def _apart(all_runs: AllRuns, one: str, other: str) -> list[str]:
    """Return on which tasks two networks differ by more than seeds make likely; nothing if no task tells."""
    networks = [(task, [values_of(runs.of(name), task) for name in (one, other)]) for task, runs in all_runs]
    pairs = [(task.title, values[0], values[1]) for task, values in networks if all(values)]
    line = apart_line(f"{NETWORKS[one].title} and {NETWORKS[other].title} differ", pairs)
    return [line] if line else []


def _has_summary(all_runs: AllRuns) -> bool:
    return any(cut_of(task, runs) is not None for task, runs in all_runs)


def reading(all_runs: AllRuns) -> list[str]:
    """Return the paragraphs on how to read the page, and how to make the runs again."""
    lines = [page_texts.READING.format(mark=bilm_mark()), *(f"- {line}" for line in earlier_weights_lines(all_runs))]
    return ["\n".join(lines), page_texts.AGAIN]


def task_part(project: Path, task: Task, runs: Runs, output: Path) -> list[str]:
    """Return the paragraphs on a task, and draw its plot beside the output."""
    parts = [f"## {task.title}"]
    if not runs.complete:
        return [*parts, "There was no run of this task when this page was written."]
    networks = [name for name in task.networks if runs.of(name)]
    parts += [f"Data: {DATA[task.name]}", source_lines(task.name, runs, networks, with_commits=False)]
    parts += [f"Settings tried on the development part: {task.tried}"]
    parts += [scores_table(task, runs), *seeds_lines(task, runs)]
    if line := ends_line(runs):
        parts.append(line)
    parts += [page_texts.COSTS, costs_table(task, runs)]
    if runs.comparable():
        plot = output.with_name(f"{output.stem}_{task.name}.png")
        plot_scores(plot, task, runs)
        parts.append(f"![{task.title}]({plot.name})")
    parts += read_parts(project, task, runs)
    if mixes := mixes_table(runs):
        parts += ["What the mixes learned, means over the runs:", mixes]
    if runs.missing:
        listed = ", ".join(f"`{path.relative_to(project).as_posix()}`" for path in runs.missing)
        parts.append(f"Missing when this page was written: {listed}.")
    return parts


def contents(parts: Sequence[str]) -> str:
    """Return links to the sections. parts: the paragraphs of the page."""
    titles = [part.removeprefix("## ").splitlines()[0] for part in parts if part.startswith("## ")]
    return "On this page: " + "; ".join(f"[{title}](#{anchor_of(title)})" for title in titles) + "."


def page_parts(project: Path, output: Path, seeds: Sequence[int], all_runs: AllRuns) -> list[str]:
    """Return the paragraphs of the page, and draw its plots beside the output."""
    parts = [*tables_of_all_tasks(all_runs), *reading(all_runs)]
    for task, runs in all_runs:
        parts += task_part(project, task, runs, output)
    parts += alternatives_parts(project, output, seeds) + tuned_parts(project, seeds, all_runs)
    parts += pace_parts(all_runs) + ablation_parts(project, output, seeds, all_runs)
    parts += bilm_parts(project) + learning_parts(project, output) + inside_parts(project)
    weights = output.with_name(f"{output.stem}_weights.png")
    if plot_mixes(weights, all_runs):
        picture = f"![weights of the layers]({weights.name})"
        parts += ["## The mixes of all tasks", page_texts.MIXES, picture]
    parts.append(page_texts.ELSEWHERE)
    return [page_texts.INTRODUCTION, *summary(project, all_runs, output), contents(parts), *parts]


def write_results(project: Path, output: Path, seeds: Sequence[int]) -> list[Path]:
    """Write the page and its plots, and return the files that were missing. Raises CommandError if there is no run."""
    all_runs = [(task, read_runs(project, task, seeds)) for task in TASKS]
    if not any(runs.complete for _, runs in all_runs):
        raise CommandError(Messages.NO_RESULTS.format(path=project / "results"))
    more = [*ABLATIONS, ALTERNATIVES, *TUNED_TASKS]
    refuse_copies([*all_runs, *((task, read_runs(project, task, seeds)) for task in more)])
    # so that a file in results/ which can't be used changes no plot
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / output.name
        with understood(project / "results", Messages.RESULTS):
            text = "\n\n".join(page_parts(project, draft, seeds, all_runs)) + "\n"
        draft.write_text(text, encoding="utf-8")
        with writing(output, CommandError):
            output.parent.mkdir(parents=True, exist_ok=True)
        for file in sorted(Path(folder).iterdir()):  # the page first
            target = output.with_name(file.name)
            with replacing(target, CommandError) as temporary, writing(target, CommandError):
                shutil.copyfile(file, temporary)
        for name in (*(task.name for task in (*TASKS, *ABLATIONS, ALTERNATIVES)), "summary", "weights", "pretraining"):
            plot = f"{output.stem}_{name}.png"
            if not draft.with_name(plot).exists():  # of a task that has no runs any more
                output.with_name(plot).unlink(missing_ok=True)
    return [path for _, runs in all_runs for path in runs.missing]


def main(
    project: Annotated[Path, typer.Argument(help="Folder with results")] = Path("."),
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
