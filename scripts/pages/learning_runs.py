"""Reads the runs that made the biLMs, from the files in results/pretraining/."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..bilms.measure_bilms import BILMS
from ..bilms.record_run import learning_result_of
from ..shared.messages import Messages
from .run_files import is_amount, read_json, understood

_TEXTS = ("bilm", "title", "text", "machine", "command")
_CORES = re.compile(r"(\d+) cores?\b")


class LearningRun(NamedTuple):
    """The evaluations of a run of pretraining.

    bilm: which the run has made.
    title: of the run.
    text: that it read.
    machine: on which it ran.
    command: that began it.
    minutes: that it took.
    before: tokens that the biLM had read in earlier runs.
    averaged: whether an average of its weights was scored.
    points: tokens read in this run, and perplexity, for each evaluation.
    """

    bilm: str
    title: str
    text: str
    machine: str
    command: str
    minutes: float
    before: int
    averaged: bool
    points: list[tuple[int, float]]

    @property
    def core_minutes(self) -> float:
        """Minutes of one core: those of the run times its cores; 0 on a GPU."""
        cores = _CORES.search(self.machine)
        return self.minutes * int(cores[1]) if cores else 0.0


def read_learning(project: Path) -> list[LearningRun]:
    """Return the runs on record: those of `en_mini` first, each biLM's in their order.

    Raises CommandError if a file can't be used.
    """
    runs = []
    for path in sorted(learning_result_of(project, "any").parent.glob("*.json")):
        with understood(path, Messages.LEARNING):
            data = read_json(path)
            points = [(int(tokens), float(perplexity)) for tokens, perplexity in data["evaluations"]]
            numbers = [data["minutes"], data["tokens_before"], *(number for point in points for number in point)]
            if not isinstance(data["averaged"], bool) or points != sorted(points):
                raise ValueError("averaged is no truth value, or the evaluations are not in their order")
            if (
                not points
                or not all(isinstance(data[name], str) for name in _TEXTS)
                or not all(map(is_amount, numbers))
            ):
                raise ValueError("no evaluations, a name that is no text, or a number that is negative or infinite")
            texts = {name: data[name] for name in _TEXTS}
            minutes, before, averaged = data["minutes"], data["tokens_before"], data["averaged"] is True
            runs.append(LearningRun(**texts, minutes=minutes, before=before, averaged=averaged, points=points))
    return sorted(runs, key=lambda run: ((*BILMS, run.bilm).index(run.bilm), run.bilm, run.before))


def training_of(runs: Sequence[LearningRun], bilm: str) -> tuple[float, int] | None:
    """Return the minutes of one core that a biLM's runs took, and the tokens they read; None without runs of it.

    The minutes leave out those of a GPU.
    """
    own = [run for run in runs if run.bilm == bilm]
    if not own:
        return None
    return sum(run.core_minutes for run in own), sum(run.points[-1][0] for run in own)
