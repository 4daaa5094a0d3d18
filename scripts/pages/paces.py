"""Part of docs/results.md: how many updates [x; ELMo] needs to be as good as x alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..runs.experiments import BASELINE, ELMO
from .results_tables import table
from .run_files import AllRuns, Runs


class Pace(NamedTuple):
    """How soon two networks learn, in updates, as means over runs.

    alone: until x alone has its best score on the development part.
    elmo: until [x; ELMo] has reached that score; None: in no run.
    reached: number of the runs in which it did. Both means are over these, if there are any.
    runs: number of all.
    every: updates from one evaluation to the next.
    """

    alone: float
    elmo: float | None
    reached: int
    runs: int
    every: int


def pace_parts(all_runs: AllRuns) -> list[str]:
    """Return the paragraphs on how many updates x alone needs for its best score, and ELMo for the same one."""
    rows, others = [], []
    for task, runs in all_runs:
        if (pace := pace_of(runs)) is None:
            others.append(task.title)
        else:
            soon = "never" if pace.elmo is None else f"{pace.elmo:,.0f}"
            rows.append([task.title, f"{pace.alone:,.0f}", soon, f"{pace.every:,}", f"{pace.reached} of {pace.runs}"])
    if not rows:
        return []
    text = (
        "Updates until x alone has its best score on the development part, and until [x; ELMo] has reached that score; "
        "means over the runs in which it did. The score is the one by which training keeps the best weights; for UD "
        "English EWT it is a weighted mean of tags, morphology and dependencies. It is known at the evaluations alone, "
        "so the updates are multiples of those from one evaluation to the next. In the paper, semantic roles took 486 "
        "epochs without ELMo and 10 with it."
    )
    head = ["task", "updates, x alone", "updates, [x; ELMo]", "evaluated every", "reached in"]
    parts = ["## How soon", text, table(head, rows)]
    return [*parts, f"Not recorded for {'; '.join(others)}."] if others else parts


def updates_until(curve: Sequence[tuple[int, float]], score: float) -> int | None:
    """Return the first number of updates at which a score is reached, None if it never is."""
    return next((updates for updates, reached in curve if reached >= score), None)


def pace_of(runs: Runs) -> Pace | None:
    """Return how soon the two main networks learn, None without runs that recorded it.

    It is None too if x alone was never better than before its first update.
    """
    elmo = {run.seed: run.curve for run in runs.of(ELMO) if run.curve}
    both = [run for run in runs.of(BASELINE) if run.curve and run.seed in elmo]
    if not both:
        return None
    bests = [max(run.curve, key=lambda point: point[1]) for run in both]  # the first one of the best
    found = [updates_until(elmo[run.seed], best) for run, (_, best) in zip(both, bests)]
    pairs = [(alone, soon) for (alone, _), soon in zip(bests, found) if soon is not None]
    steps = (later - earlier for run in both for (earlier, _), (later, _) in pairwise(run.curve))
    every = min(steps, default=0)
    if not pairs:
        return Pace(statistics.mean(alone for alone, _ in bests), None, 0, len(both), every)
    alone, soon = (statistics.mean(column) for column in zip(*pairs))
    return Pace(alone, soon, len(pairs), len(both), every) if alone else None
