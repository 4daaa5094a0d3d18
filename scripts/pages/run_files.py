"""Reads what was measured of the runs of a task."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from spacy_elmo.errors import CommandError
from spacy_elmo.pipeline.mixes import LearnedMix

from ..runs.experiments import BASELINE, ELMO, Task, result_of, trivial_of
from ..shared.messages import Messages

MAIN = (BASELINE, ELMO)  # every task has runs of these


class Run(NamedTuple):
    """A training run.

    network: one of the task's.
    seed: of its random numbers.
    dev: scores on the development part, of the best evaluation.
    tests: scores for each of the task's test files.
    minutes: of training.
    parameters: number of weights of all components but biLMs.
    megabytes: of the trained pipeline's folder.
    words_per_second: while the test part was scored.
    commit: of the project.
    machine: its processor.
    bilm: mark of the weights of `en_mini`; "" without it.
    mixes: what the scalar mixes learned.
    curve: updates and score on the development part at each evaluation; empty for runs that did not write it.
    fingerprint: of its settings, its seed among them, and of the files that it read.
    """

    network: str
    seed: int
    dev: dict[str, float]
    tests: dict[str, dict[str, float]]
    minutes: float
    parameters: int
    megabytes: float
    words_per_second: int
    commit: str
    machine: str
    bilm: str
    mixes: list[LearnedMix]
    curve: list[tuple[int, float]]
    fingerprint: str


_READ = ("network", "seed", "dev", "tests", "mixes", "curve")  # those that are not copied as they are
_TEXTS = ("commit", "machine", "bilm", "fingerprint")
_LARGEST = 1e15  # that a number can be


class Runs(NamedTuple):
    """The runs of a task.

    complete: those that were measured.
    missing: files of the others: of the two main networks, and of networks that have some runs.
    trivial: what a system does that learns nothing, and its scores for each of the task's test files; "" and none
        without such a system.
    """

    complete: list[Run]
    missing: list[Path]
    trivial: tuple[str, dict[str, dict[str, float]]] = ("", {})

    def of(self, network: str) -> list[Run]:
        """Return the runs of a network, in the order of seeds."""
        return [run for run in self.complete if run.network == network]

    def comparable(self) -> bool:
        """Return whether there is another network to compare with x alone."""
        return bool(self.of(BASELINE)) and len({run.network for run in self.complete}) > 1


AllRuns = Sequence[tuple[Task, Runs]]


def read_runs(project: Path, task: Task, seeds: Iterable[int]) -> Runs:
    """Return the runs of a task.

    Raises CommandError if a file is not JSON, or if something is missing in it.
    """
    runs, numbers = Runs([], [], _trivial(trivial_of(project, task.name), task)), list(seeds)
    for network in task.networks:
        paths = {seed: result_of(project, task.name, network, seed) for seed in numbers}
        there = {seed: path for seed, path in paths.items() if path.exists()}
        runs.complete.extend(_read(path, task, network, seed) for seed, path in there.items())
        if there or network in MAIN:
            runs.missing.extend(path for seed, path in paths.items() if seed not in there)
    return runs


@contextmanager
def understood(path: Path, message: str = Messages.RESULT) -> Iterator[None]:
    """Turn what goes wrong in reading a file into a CommandError. message: with its path and the reason."""
    try:
        yield
    except CommandError:
        raise
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise CommandError(message.format(path=path, reason=repr(error))) from error


def read_json(path: Path) -> Any:
    """Return what a JSON file says. Raises ValueError for what is not JSON, and for numbers that are not below 1e15."""

    def number(text: str) -> float:
        value = float(text)
        if not abs(value) <= _LARGEST:
            raise ValueError(f"a number is {text[:20]}")
        return value if any(letter in text for letter in ".eEN") else int(text)

    text = path.read_text(encoding="utf-8")
    return json.loads(text, parse_constant=number, parse_float=number, parse_int=number)


def read_record(path: Path, message: str, *more: str) -> dict[str, Any] | None:
    """Return what a measurement wrote to a file; None without it.

    message: of the error, with the path and the reason.
    more: entries beside those of all measurements.

    Raises CommandError if the file can't be used.
    """
    if not path.exists():
        return None
    with understood(path, message):
        data = read_json(path)
        record = {name: data[name] for name in ("command", "commit", "machine", "minutes", "result", *more)}
        if not is_amount(record["minutes"]):
            raise ValueError(f"minutes is {record['minutes']!r}")
        return record


def refuse_copies(all_runs: AllRuns) -> None:
    """Raise CommandError if two results are those of one run: by a copy, several runs would seem to agree."""
    known: dict[str, str] = {}
    for task, runs in all_runs:
        for run in runs.complete:
            name = f"{task.name}/{run.network}/seed-{run.seed}"
            if (other := known.setdefault(run.fingerprint, name)) != name:
                raise CommandError(Messages.RESULT_TWICE.format(got=name, other=other))


def _read(path: Path, task: Task, network: str, seed: int) -> Run:
    with understood(path):
        data = read_json(path)
        facts = {name: data[name] for name in Run._fields if name not in _READ}
        for name, value in facts.items():
            if not (isinstance(value, str) if name in _TEXTS else is_amount(value)):
                raise ValueError(f"{name} is {value!r}")
        if not isinstance(data["dev"], dict):
            raise TypeError(f"dev is {data['dev']!r}")
        dev = {one.key: _score(data["dev"][one.key]) for one in task.measures if one.key in data["dev"]}
        mixes = [LearnedMix(**mix) for mix in data["mixes"]]
        for mix in mixes:
            if not all(isinstance(text, str) for text in (mix.component, mix.place)):
                raise TypeError(f"a mix is that of {mix.component!r}, {mix.place!r}")
            if not mix.weights or not all(map(is_amount, mix.weights)) or isinstance(mix.gamma, bool):
                raise ValueError(f"the weights of a mix are {mix.weights!r}")
            float(mix.gamma)
        curve = [(int(updates), _score(score)) for updates, score in data.get("curve", [])]
        return Run(network=network, seed=seed, dev=dev, tests=_tests(data, task), mixes=mixes, curve=curve, **facts)


def is_amount(value: object) -> bool:
    """Return whether a value is a finite number, and not negative."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def amount(value: Any) -> float:
    """Return a value. Raises ValueError if it is not a finite number, or negative."""
    if not is_amount(value):
        raise ValueError(f"an amount is {value!r}")
    return float(value)


def _score(value: Any) -> float:
    if not is_amount(value) or value > 1:
        raise ValueError(f"a score is {value!r}, not a number between 0 and 1")
    return float(value)


def _trivial(path: Path, task: Task) -> tuple[str, dict[str, dict[str, float]]]:
    if not path.exists():
        return "", {}
    with understood(path):
        data = read_json(path)
        if not isinstance(data["what"], str) or not data["what"]:
            raise ValueError(f"what is {data['what']!r}")
        return data["what"], _tests(data, task)


def _tests(data: dict[str, Any], task: Task) -> dict[str, dict[str, float]]:
    """Return the task's measures on each of its test files."""
    return {name: {one.key: _score(data["tests"][name][one.key]) for one in task.measures} for name in task.tests}
