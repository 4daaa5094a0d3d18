"""Part of docs/results.md: the answers in paragraphs that `en_mini` has read, and in the others."""

from __future__ import annotations

from pathlib import Path

from ..runs.experiments import BASELINE, ELMO, Task
from ..runs.read_paragraphs import TASK, read_paragraphs_of
from ..shared.messages import Messages
from .figures import error_cut, mean_percent, shown_cut
from .results_tables import table
from .run_files import Runs, amount, read_json, understood

_PARTS = {"read": "that it has read", "others": "that it has not read"}


def read_parts(project: Path, task: Task, runs: Runs) -> list[str]:
    """Return the paragraphs for a task; none if the task is another one, without results, or without runs of theirs.

    runs: of the task. The table is of those whose fingerprints the results have.

    Raises CommandError if the file can't be used.
    """
    path = read_paragraphs_of(project)
    if task.name != TASK or not path.exists():
        return []
    key = task.measures[0].key
    with understood(path, Messages.READ_RESULT):
        data = read_json(path)
        result = data["result"]
        marks = {name: [run.fingerprint for run in runs.of(name)] for name in (BASELINE, ELMO)}
        kept = {name: [i for i, one in enumerate(result["runs"][name]) if one in marks[name]] for name in marks}
        if not all(kept.values()):
            return ["`results/read/answers.json`, the answers in paragraphs that `en_mini` has read, is of other runs."]
        for number in (result["paragraphs"], result["read"], *result["questions"].values()):
            amount(number)
        rows = []
        for part, title in _PARTS.items():
            if result["questions"][part]:
                of_part = {name: result["scores"][name][part] for name in kept}
                base, elmo = ([of_part[name][i][key] for i in kept[name]] for name in (BASELINE, ELMO))
                means = (mean_percent(base), mean_percent(elmo), shown_cut(error_cut(base, elmo)))
                rows.append([title, f"{result['questions'][part]:,}", *means])
        counts = f"{len(kept[BASELINE])} of x alone, {len(kept[ELMO])} of [x; ELMo]"
        text = (
            f"Of the {result['paragraphs']} paragraphs of the test part, `en_mini` has read {result['read']}, without "
            "the questions: a tenth or more of their runs of eight words are in its text of Wikipedia. The same runs "
            f"({counts}), scored on the questions of these paragraphs and on the others (`{data['command']}`; commit "
            f"{data['commit']}; {data['machine']}; {data['minutes']:.0f} minutes):"
        )
    head = ["paragraphs", "questions", *(task.networks[name].title for name in (BASELINE, ELMO)), "error cut"]
    return [text, table(head, rows)]
