"""Reads the files that the runs of a task wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from experiments import Task
from messages import Messages

from spacy_elmo.errors import CommandError


class Run(NamedTuple):
    """A training run.

    kind: of the network, one of KINDS.
    seed: of its random numbers.
    scores: of the test part.
    seconds: of training; None: there is no record.
    model: folder of the pipeline; None: there is none.
    """

    kind: str
    seed: int
    scores: dict[str, Any]
    seconds: float | None
    model: Path | None


class Runs(NamedTuple):
    """The runs of a task.

    complete: runs that have their test scores.
    missing: files that were expected and do not exist.
    """

    complete: list[Run]
    missing: list[Path]

    def of(self, kind: str) -> list[Run]:
        """Return the runs of a kind, in the order of seeds."""
        return [run for run in self.complete if run.kind == kind]


def read_runs(project: Path, task: Task, seeds: Iterable[int]) -> Runs:
    """Return the runs of a task.

    Raises CommandError if a file is not JSON, or if a score or the seconds are missing in it.
    """
    runs = Runs([], [])
    for kind in task.kinds:
        for seed in seeds:
            metrics = project / "metrics" / task.name / kind / f"seed-{seed}.json"
            folder = project / "training" / task.name / kind / f"seed-{seed}"
            record, model = folder / "run.json", folder / "model-best"
            runs.missing.extend(path for path in (metrics, record, model) if not path.exists())
            if metrics.exists():
                scores = _read(metrics, [measure.key for measure in task.measures])
                seconds = _read(record, ["seconds"])["seconds"] if record.exists() else None
                runs.complete.append(Run(kind, seed, scores, seconds, model if model.exists() else None))
    return runs


def _read(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        numbers = {key: float(data[key]) for key in keys}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(Messages.METRICS.format(path=path, keys=", ".join(keys), reason=repr(error))) from error
    return numbers
