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
from ..runs.experiments import ALTERNATIVES, ELMO, MIDI, TASKS, Task
from ..runs.facts_of_runs import bilm_mark
from ..runs.train_runs import seeds_of
from ..runs.tuned_tasks import TUNED_TASKS
from ..shared.command import run_command
from ..shared.messages import Messages
from .ablation_tables import ablation_parts, pace_parts
from .alternatives_tables import alternatives_parts
from .bilm_tables import bilm_parts
from .inside_tables import inside_parts
from .learning_tables import learning_parts
from .read_tables import read_parts
from .results_plots import has_scores, plot_mixes, plot_scores, plot_summary
from .results_tables import (
    DAGGER,
    OF_BILMS,
    WITH_VECTORS,
    apart_line,
    beside_table,
    costs_table,
    cut_of,
    mixes_table,
    scores_table,
    source_lines,
    summary_table,
)
from .run_files import AllRuns, Runs, read_runs, refuse_copies
from .summary_lines import earlier_weights_lines, summary_lines
from .task_notes import DATA
from .tuned_tables import tuned_parts

_INTRODUCTION = """\
# Results

What the embedded [biLM](glossary.md) `en_mini` brings to spaCy's components and to those of this package. "x alone" is
a component's usual network, which gets features of each word's form. "[x; ELMo]" is the same network, which also gets a
learned mix of the biLM's layers. Within a task, the networks differ only in what their names say. The paper's figures
are of its own biLM, which has 17 times the parameters, and of larger training sets. "How to read this page" is below
the first tables."""

_SUMMARY = "Scores of the test part, in %; means over the runs:"
_WITH_VECTORS = """\
The same measures with [static vectors](#what-you-would-take-instead) in x. {daggers}"""
_DAGGERS = f"{DAGGER}: the two networks with ELMo had different weights of `en_mini`, so do not compare them."
_OF_BILMS = """\
The same measures with the larger biLM [`en_midi`](pretraining.md#how-en_midi-was-trained). The settings are those of
`en_mini`. These runs were made without the compiled loops, and some were scored without them, so their minutes and
words per second in the sections of the tasks are no measure of its speed:"""

_READING = """\
How to read this page, which `python -m spacy project run results .` writes from the files in `results/`:

- Of each training, the weights with the best score on the development part were scored once on the test part.
- ±: the sample standard deviation over the runs of a network. It does not tell how much another test part would change.
- Error cut: the share of the errors of x alone that is gone, (E of x alone - E) / E of x alone. E is 100 minus the mean
  score.
- The weights of `en_mini` are named by the first digits of their SHA-256; those of the package have {mark}.
- One biLM of random weights serves all seeds.
- Trained parameters: of all components but the biLM, which is frozen.
- Minutes are those of the shortest run, and include pauses. Words per second are those of the fastest run. Runs had one
  thread, on machines of different speed that did other work, so take both as rough sizes. Words per second in "What you
  would take instead" were measured side by side.
- What the mixes learned: the softmax weights of layers 0, 1 and 2, whose sum is 1, and the factor gamma. "Input" is
  before the component's encoder, "output" after it.
- The networks with static vectors need `python -m spacy project run embedding_floret . --vars.text FILE` first. FILE is
  `wikipedia_en_2015`, the first text that `en_mini` read: see [its training](pretraining.md#how-en_mini-was-trained).
- Static vectors are those of [floret](https://github.com/explosion/floret): fastText's, with which spaCy makes a vector
  for any word. LAS and UAS: the share of words that get the right head, with its label or without. MUC, B-cubed,
  CEAF-phi4 and LEA are [measures of coreference](tasks.md#coreference).
- The summary, "How soon" and "The mixes of all tasks" are made of the runs in the other sections."""


_COSTS = "What each network takes (the top of this page says how it was measured):"
_MIXES = """\
Which layers each task and place takes, as Figure 2 of the paper: a row for each mix of the first run, a column for each
layer, darker for a larger weight."""


_ELSEWHERE = """\
## Figures on other pages

This page tells what ELMo brings, and what its biLMs know. These pages have the other figures, each with its command:

- [Performance](performance.md): words per second beside other programs, memory, and what bfloat16 costs.
- [Exactness](exactness.md): how closely the vectors agree with those of AllenNLP and bilm-tf, and with each other.
- [Scale](scale.md): the hours and the storage that a very large corpus takes.
- [Reliability](reliability.md): what was measured with damaged files, killed processes and long runs.
- [Pretraining](pretraining.md): the speed of training, and the sizes, optimizers and small texts that were tried.
- [Training on ELMo](training.md): some settings on the development parts, and the time and memory of training.
- [The paper's other tasks](tasks.md): time and memory for long docs.
- [Predictions](predictions.md): what trained components say about ten sentences."""


def summary(project: Path, all_runs: AllRuns, output: Path) -> list[str]:
    """Return the paragraphs of the summary, and draw its plot beside the output."""
    if all(cut_of(task, runs) is None for task, runs in all_runs):
        return []
    plot = output.with_name(f"{output.stem}_summary.png")
    plot_summary(plot, all_runs)
    picture = f"![share of the errors that ELMo removes]({plot.name})"
    lines = "\n".join(f"- {line}" for line in summary_lines(project, all_runs))
    parts = [picture, lines, _SUMMARY, summary_table(all_runs)]
    if beside := beside_table(all_runs, WITH_VECTORS):
        daggers = _DAGGERS if DAGGER in beside else ""
        parts += [_WITH_VECTORS.format(daggers=daggers).rstrip(), beside]
    if beside := beside_table(all_runs, OF_BILMS):
        parts += [_OF_BILMS, beside]
        if line := apart_line(all_runs, ELMO, MIDI):
            parts.append(line)
    return parts


def task_part(project: Path, task: Task, runs: Runs, output: Path) -> list[str]:
    """Return the paragraphs on a task, and draw its plot beside the output."""
    parts = [f"## {task.title}"]
    if not runs.complete:
        return [*parts, "There was no run of this task when this page was written."]
    networks = [name for name in task.networks if runs.of(name)]
    parts += [f"Data: {DATA[task.name]}", source_lines(task.name, runs, networks)]
    parts += [f"Settings tried on the development part: {task.tried}"]
    parts += [scores_table(task, runs), _COSTS, costs_table(task, runs)]
    if has_scores(runs):
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


def page_parts(project: Path, output: Path, seeds: Sequence[int], all_runs: AllRuns) -> list[str]:
    """Return the paragraphs of the page, and draw its plots beside the output."""
    reading = "\n".join([_READING.format(mark=bilm_mark()), *(f"- {line}" for line in earlier_weights_lines(all_runs))])
    parts = [_INTRODUCTION, *summary(project, all_runs, output), reading]
    for task, runs in all_runs:
        parts += task_part(project, task, runs, output)
    parts += alternatives_parts(project, output, seeds) + tuned_parts(project, seeds, all_runs)
    parts += pace_parts(all_runs) + ablation_parts(project, output, all_runs)
    parts += bilm_parts(project) + learning_parts(project, output) + inside_parts(project)
    weights = output.with_name(f"{output.stem}_weights.png")
    if plot_mixes(weights, all_runs):
        picture = f"![weights of the layers]({weights.name})"
        parts += ["## The mixes of all tasks", f"{_MIXES}\n\n{picture}"]
    return [*parts, _ELSEWHERE]


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
        draft.write_text("\n\n".join(page_parts(project, draft, seeds, all_runs)) + "\n", encoding="utf-8")
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
