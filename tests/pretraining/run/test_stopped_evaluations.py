"""A signal during an evaluation stops it at once, and the resumed run ends in the same bits."""

from __future__ import annotations

import json
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from small_run import STEPS, STREAMS, config_of, run, write_text

from spacy_elmo.pretraining import scoring
from spacy_elmo.pretraining.checkpoint import Checkpoints
from spacy_elmo.pretraining.config import PretrainConfig
from spacy_elmo.pretraining.metrics import EvaluationRow, Reporter
from spacy_elmo.pretraining.scoring import row_losses

UPDATES, EVERY = 6, 2
CLOCKS = ("seconds", "tokens_per_second")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[PretrainConfig, Path]:
    """A tuning run that never stops, and its settings. The evaluation before it is its first, the card's its last."""
    folder = tmp_path_factory.mktemp("whole")
    text = write_text(folder / "text.txt", 100)
    run(config_of(text, 2), folder / "first")
    config = config_of(text, UPDATES, paths={"init": folder / "first" / "model-last"})
    run(config, folder / "out")
    return config, folder / "out"


class Stopping(Reporter):
    """Sends a signal when the first batch of an evaluation is scored. which: number of the evaluation, from 0."""

    def __init__(self, which: int, number: signal.Signals) -> None:
        self.which, self.number, self.evaluations, self.updates = which, number, 0, 0

    def step(self, step: int, *rest: Any) -> None:
        self.updates = step

    def evaluating(self, scored: int, sentences: int) -> None:
        self.evaluations += not scored
        if scored and self.evaluations == self.which + 1:
            signal.raise_signal(self.number)


def state(output: Path) -> tuple[int, dict[str, bytes]]:
    found = Checkpoints(output / "checkpoints").latest(pytest.fail)
    assert found is not None
    return found[0], {name: array.tobytes() for name, array in found[1].items() if name != "progress/seconds"}


def metrics(output: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [{name: value for name, value in row.items() if name not in CLOCKS} for row in rows]


def arrays(folder: Path) -> dict[str, bytes]:
    with h5py.File(folder / "weights.hdf5") as file:
        names: list[str] = []
        file.visit(names.append)
        return {name: np.asarray(file[name]).tobytes() for name in names if isinstance(file[name], h5py.Dataset)}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("which", "updates"), [(0, 0), (1, 2), (3, 6), (4, 6)])
def test_the_resumed_run_ends_in_the_same_bits(
    whole: tuple[PretrainConfig, Path], tmp_path: Path, which: int, updates: int, number: signal.Signals
) -> None:
    """Before tuning, on the way, after the last update, and in the scoring of all sentences for the cards."""
    config, expected = whole
    stopping = Stopping(which, number)
    assert run(config, tmp_path / "out", stopping).stopped_by == number
    assert stopping.updates == updates
    rows = metrics(tmp_path / "out") if which else []
    assert rows == metrics(expected)[:which]
    if which:
        assert state(tmp_path / "out")[0] == updates
    assert run(config, tmp_path / "out").stopped_by is None
    assert state(tmp_path / "out") == state(expected)
    assert metrics(tmp_path / "out") == metrics(expected)
    for name in ("model-last", "model-best"):
        assert arrays(tmp_path / "out" / name) == arrays(expected / name)


class Killed(Exception):
    """Ends a run without a checkpoint."""


class KilledAfterEvaluation(Reporter):
    def evaluated(self, row: EvaluationRow) -> None:
        raise Killed


def test_an_owed_evaluation_is_recorded_once(whole: tuple[PretrainConfig, Path], tmp_path: Path) -> None:
    """The resumed run is killed between the line of its evaluation and its checkpoint."""
    config, expected = whole
    run(config, tmp_path / "out", Stopping(1, signal.SIGINT))
    with pytest.raises(Killed):
        run(config, tmp_path / "out", KilledAfterEvaluation())
    run(config, tmp_path / "out")
    assert metrics(tmp_path / "out") == metrics(expected)


def test_a_signal_is_answered_within_a_second(
    whole: tuple[PretrainConfig, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a batch, and each batch needs half a second more than it would."""
    config = replace(whole[0], paths=replace(whole[0].paths, init=None))
    sent: list[float] = []

    def slow(*arguments: Any) -> Any:
        if not sent:
            sent.append(time.perf_counter() + 0.05)
            threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
        for _ in range(500):
            time.sleep(0.01)  # the handler runs between two operations
        return row_losses(*arguments)

    monkeypatch.setattr(scoring, "row_losses", slow)
    assert run(config, tmp_path / "out").stopped_by == signal.SIGINT
    assert time.perf_counter() - sent[0] < 1
    assert state(tmp_path / "out")[0] == EVERY
    assert whole[0].training.total_tokens == UPDATES * STREAMS * STEPS
