"""[x; ELMo] with a biLM that was first tuned on the text of the task's training part, as in the paper's appendix A.1.

The labels are not used for it, and the biLM is frozen while the task is learned.

assets/tuned/TASK/           options.json and weights.hdf5 of the tuned biLM
results/tuned/TASK.json      its perplexity before and after (tune_bilm.py); committed
results/tuned_TASK/...       runs of the network "tuned", as of any task
"""

from __future__ import annotations

from pathlib import Path

from .experiments import TASKS, Task, other_bilm

TUNED = "tuned"


def tuned_folder(task: str) -> Path:
    """Return the folder, in the project's, of the biLM that was tuned on a task's text."""
    return Path("assets") / TUNED / task


def tuned_result(project: Path, task: str) -> Path:
    """Return the file of the perplexities before and after tuning."""
    return project / "results" / TUNED / f"{task}.json"


def _tuned(task: Task) -> Task:
    network = other_bilm("[x; ELMo tuned on the task's text]", tuned_folder(task.name).as_posix())
    return task._replace(name=f"{TUNED}_{task.name}", config=task.config or task.name, networks={TUNED: network})


TUNED_TASKS = tuple(map(_tuned, TASKS))
