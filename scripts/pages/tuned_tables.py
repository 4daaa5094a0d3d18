"""The section of docs/results.md on biLMs that were tuned on a task's text: their perplexity, and what they bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..runs.experiments import BASELINE, ELMO, TASKS, Task
from ..runs.tuned_tasks import TUNED, TUNED_TASKS, tuned_result
from ..shared.messages import Messages
from .figures import error_cut, mean_percent, shown_cut
from .results_tables import apart_line, table, values_of
from .run_files import AllRuns, Run, amount, read_json, read_runs, understood

# Table 7 of Peters et al. 2018: forward perplexity before and after; of contexts for SQuAD, of CoNLL-2003 for entities
_PAPER = {
    "ner_newswire": ("103.2", "46.3"),
    "textcat": ("131.5", "78.6"),
    "entailment": ("72.1", "16.8"),
    "answers": ("99.1", "43.5"),
}
_TEXT = """\
`en_mini` was tuned on the words of a task's training part, without the labels: for one epoch, with the settings of
`init-pretrain-config --init en_mini`. The weights that were best on the development part were kept. Then they were
frozen, and [x; tuned], which is [x; ELMo] with them, was trained as before. The paper did the same (its appendix A.1):
perplexity fell, the accuracy on SNLI's development part rose by 0.6 points, and that on SST stayed about the same.

Perplexities are those of the forward direction on the development part, from the zero state, by a softmax over 50,000
words. All other words count as `<UNK>`. If there are many of these, a tuned biLM soon learns to predict them; "of known
words" leaves them out. The paper's are of other words, and for entities of CoNLL-2003: compare only the changes."""

_SCORES = "Scores of the test part in %, means over the runs ({source}), and the same measure on the development part:"


class Tuning(NamedTuple):
    """What tune_bilm.py measured of a task.

    before, after: perplexities, by direction.
    tokens: that were read.
    minutes: of tuning.
    source: commit, machine and mark of the weights of `en_mini`.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    tokens: int
    minutes: float
    source: str


def tuned_parts(project: Path, seeds: Sequence[int], all_runs: AllRuns) -> list[str]:
    """Return the paragraphs of the section; none without results. all_runs: of the tasks with the biLM as it is.

    Raises CommandError if a result can't be used.
    """
    found = {task.name: read_tuning(tuned_result(project, task.name)) for task in TASKS}
    measured = {name: tuning for name, tuning in found.items() if tuning is not None}
    if not measured:
        return []
    sources = "; ".join(sorted({tuning.source for tuning in measured.values()}))
    parts = ["## The biLM tuned on a task's text", f"`python -m spacy project run tuned .`; {sources}.", _TEXT]
    parts.append(_perplexities(measured))
    untuned = {task.name: runs for task, runs in all_runs}
    rows: list[list[str]] = []
    pairs: list[tuple[str, list[float], list[float]]] = []
    runs_of: set[str] = set()
    for task, tuned in zip(TASKS, TUNED_TASKS):
        of_tuned = read_runs(project, tuned, seeds)
        if of_tuned.complete and task.name in untuned:
            runs = [untuned[task.name].of(BASELINE), untuned[task.name].of(ELMO), of_tuned.of(TUNED)]
            rows.append(_scores(task, runs))
            pairs += [(task.title, values_of(runs[1], task), values_of(runs[2], task))] if runs[1] else []
            runs_of |= {f"commit {run.commit}; {run.machine}" for run in of_tuned.complete}
    if rows:
        head = ["task", "measure", "x alone", "[x; ELMo]", "[x; tuned]", "error cut, ELMo", "error cut, tuned"]
        head += ["development part, [x; ELMo]", "development part, [x; tuned]", "runs of each network"]
        parts += [_SCORES.format(source="; ".join(sorted(runs_of))), table(head, rows)]
        if line := apart_line("[x; ELMo] and [x; tuned] differ on the test part", pairs):
            parts.append(line)
    if others := [task.title for task in TASKS if task.name not in measured]:
        parts.append(f"Not measured when this page was written: {'; '.join(others)}.")
    return parts


def read_tuning(path: Path) -> Tuning | None:
    """Return what a file says, None without it. Raises CommandError if it is damaged."""
    if not path.exists():
        return None
    with understood(path, Messages.TUNED_RESULT):
        data = read_json(path)
        for side in ("before", "after"):
            amount(data[side]["forward"]), amount(data[side]["without_unknown"]["forward"])
        for text in ("commit", "machine", "bilm"):
            if not isinstance(data[text], str):
                raise TypeError(f"{text} is {data[text]!r}")
        source = f"commit {data['commit']}; {data['machine']}; `en_mini` {data['bilm']}"
        return Tuning(data["before"], data["after"], int(amount(data["tokens"])), amount(data["minutes"]), source)


def _perplexities(measured: Mapping[str, Tuning]) -> str:
    rows = []
    for task in TASKS:
        if (tuning := measured.get(task.name)) is not None:
            sides = (tuning.before, tuning.after)
            figures = [f"{side['forward']:.1f}" for side in sides]
            figures += [f"{side['without_unknown']['forward']:.1f}" for side in sides]
            paper = _PAPER.get(task.name, ("", ""))
            rows.append([task.title, f"{tuning.tokens / 1e6:.2f}", f"{tuning.minutes:.1f}", *figures, *paper])
    head = ["text", "million tokens read", "minutes", "perplexity before", "perplexity after"]
    return table(
        [*head, "of known words, before", "of known words, after", "the paper's before", "the paper's after"], rows
    )


def _scores(task: Task, runs: Sequence[Sequence[Run]]) -> list[str]:
    """Return a row. runs: of x alone, [x; ELMo], and the same with the tuned biLM."""
    tests = [values_of(of, task) for of in runs]
    key = task.measures[0].key
    devs = [[run.dev[key] for run in of if key in run.dev] for of in runs[1:]]
    cuts = [error_cut(tests[0], values) for values in tests[1:]]
    return [
        task.title,
        task.measures[0].name,
        *map(mean_percent, tests),
        *map(shown_cut, cuts),
        *map(mean_percent, devs),
        ", ".join(str(len(of)) for of in runs),
    ]
