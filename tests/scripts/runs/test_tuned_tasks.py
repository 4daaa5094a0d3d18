"""Tasks with a tuned biLM: they differ from the task in the biLM's files alone."""

from pathlib import Path

import pytest

from scripts.runs.experiments import ELMO, TASKS, Task
from scripts.runs.network_configs import network_config
from scripts.runs.train_runs import task_of
from scripts.runs.tuned_tasks import TUNED, TUNED_TASKS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("task", "tuned"), list(zip(TASKS, TUNED_TASKS)), ids=[task.name for task in TASKS])
def test_only_the_bilm_differs(task: Task, tuned: Task) -> None:
    assert task_of(f"tuned_{task.name}") is tuned
    config, changed = (
        network_config(ROOT, task, task.networks[ELMO]),
        network_config(ROOT, tuned, tuned.networks[TUNED]),
    )
    bilm = changed["components"]["elmo"]["model"]
    assert bilm["options_file"] == f"assets/tuned/{task.name}/options.json"
    assert bilm["weight_file"] == f"assets/tuned/{task.name}/weights.hdf5"
    bilm.update(options_file=None, weight_file=None)
    assert changed == config
    assert (tuned.tests, tuned.measures) == (task.tests, task.measures)
