"""Part of docs/results.md: the answers in paragraphs that `en_mini` has read, and in the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..runs.experiments import BASELINE, ELMO, Task
from ..runs.read_paragraphs import TASK, read_paragraphs_of
from ..shared.messages import Messages
from .figures import error_cut, mean_percent, shown_cut
from .results_tables import table
from .run_files import Runs, read_json, understood

_PARTS = {"read": "that it has read", "others": "that it has not read"}


def read_parts(project: Path, task: Task, runs: Runs) -> list[str]:
    """Return the paragraphs for a task; none if the task is another one, or without results.

    runs: of the task.

    Raises CommandError if the file can't be used.
    """
    path = read_paragraphs_of(project)
    if task.name != TASK or not path.exists():
        return []
    key = task.measures[0].key
    with understood(path, Messages.READ_RESULT):
        data = read_json(path)
        result = data["result"]
        for network in (BASELINE, ELMO):
            if result["runs"][network] != [run.fingerprint for run in runs.of(network)]:
                raise ValueError(f"it has other runs of {network} than results/{TASK}")
        parts = [part for part in _PARTS if result["questions"][part]]
        rows = [_row(_PARTS[part], result["questions"][part], result["scores"], part, key) for part in parts]
        text = (
            f"Of the {result['paragraphs']} paragraphs of the test part, `en_mini` has read {result['read']}, without "
            "the questions: a tenth or more of their runs of eight words are in its text of Wikipedia. The same runs, "
            f"scored on the questions of these paragraphs and on the others (`{data['command']}`; commit "
            f"{data['commit']}; {data['machine']}; {data['minutes']:.0f} minutes):"
        )
    head = ["paragraphs", "questions", *(task.networks[name].title for name in (BASELINE, ELMO)), "error cut"]
    return [text, table(head, rows)]


def _row(
    name: str, questions: int, scores: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]], part: str, key: str
) -> list[str]:
    base, elmo = ([run[key] for run in scores[network][part]] for network in (BASELINE, ELMO))
    return [name, f"{questions:,}", mean_percent(base), mean_percent(elmo), shown_cut(error_cut(base, elmo))]
