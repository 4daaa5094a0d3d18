"""A run that is stopped or killed, and resumed, ends in the same bits as one that never stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from commands import run as run_command
from small_run import config_of, last_checkpoint, run, write_text

from spacy_elmo.pretraining import scoring
from spacy_elmo.pretraining.config import (
    EvaluationSettings,
    PretrainConfig,
    ScheduleSettings,
    SoftmaxSettings,
    VocabularySettings,
    read_config,
    write_config,
)
from spacy_elmo.pretraining.evaluating import EvaluationRow, Reporter
from spacy_elmo.pretraining.scoring import score_rows

GOLDEN = Path(__file__).parents[1] / "golden" / "run_b76a2b9"


def metrics(output: Path) -> list[dict[str, Any]]:
    """Without what depends on the clock."""
    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second")} for row in rows]


def state(output: Path) -> tuple[int, dict[str, np.ndarray]]:
    """The last checkpoint, without what depends on the clock."""
    step, arrays = last_checkpoint(output)
    return step, {name: array for name, array in arrays.items() if name != "progress/seconds"}


def bits(arrays: dict[str, np.ndarray]) -> dict[str, object]:
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


def model(folder: Path) -> dict[str, Any]:
    """All files of a model but its card, which tells the hours. Of HDF5 the type, shape and bytes of each dataset."""
    files: dict[str, Any] = {}
    for path in folder.iterdir():
        if path.suffix == ".hdf5":
            arrays: dict[str, bytes] = {}

            def visit(name: str, item: object, arrays: dict[str, bytes] = arrays) -> None:
                if isinstance(item, h5py.Dataset):
                    arrays[name] = f"{item.dtype} {item.shape} ".encode() + np.asarray(item[()]).tobytes()

            with h5py.File(path) as file:
                file.visititems(visit)
            files[path.name] = arrays
        elif path.name != "README.md":
            files[path.name] = path.read_bytes()
    assert {"weights.hdf5", "softmax.hdf5", "options.json", "vocabulary.txt"} <= files.keys()
    return files


def assert_same_runs(one: Path, other: Path) -> None:
    assert metrics(one) == metrics(other)
    for name in ("model-last", "model-best"):
        assert model(one / name) == model(other / name)
    (step, arrays), (other_step, other_arrays) = state(one), state(other)
    assert step == other_step
    assert bits(arrays) == bits(other_arrays)
    names = [
        sorted(str(path.relative_to(output)) for path in output.rglob("*") if path.name != "curve.png")
        for output in (one, other)
    ]
    assert names[0] == names[1]  # nothing half-written is left


# By a signal in an evaluation


UPDATES, EVERY = 6, 2


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[PretrainConfig, Path]:
    """A tuning run that never stops, and its settings. The evaluation before it is its first, the card's its last."""
    folder = tmp_path_factory.mktemp("tuned")
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "updates", "number"), [(0, 0, signal.SIGINT), (1, 2, signal.SIGTERM), (4, 6, signal.SIGTERM)]
)
def test_an_evaluation_is_stopped_at_once_and_made_again(
    tuned: tuple[PretrainConfig, Path], tmp_path: Path, which: int, updates: int, number: signal.Signals
) -> None:
    """Before tuning, on the way, and in the scoring of all sentences for the cards."""
    config, expected = tuned
    stopping = Stopping(which, number)
    assert run(config, tmp_path / "out", stopping) == number
    assert stopping.updates == updates
    if which:
        assert metrics(tmp_path / "out") == metrics(expected)[:which]
        assert state(tmp_path / "out")[0] == updates
    assert run(config, tmp_path / "out") is None
    assert_same_runs(tmp_path / "out", expected)


class Killed(Reporter):
    def evaluated(self, row: EvaluationRow) -> None:
        raise ZeroDivisionError  # ends a run without a checkpoint


@pytest.mark.slow
def test_an_owed_evaluation_is_recorded_once(tuned: tuple[PretrainConfig, Path], tmp_path: Path) -> None:
    """The resumed run is killed between the line of its evaluation and its checkpoint."""
    config, expected = tuned
    run(config, tmp_path / "out", Stopping(1, signal.SIGINT))
    with pytest.raises(ZeroDivisionError):
        run(config, tmp_path / "out", Killed())
    run(config, tmp_path / "out")
    assert metrics(tmp_path / "out") == metrics(expected)


def test_a_signal_is_answered_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a batch, and each batch needs half a second more than it would."""
    config = config_of(write_text(tmp_path / "text.txt"))
    sent: list[float] = []

    def slow(*arguments: Any) -> Any:
        if not sent:
            sent.append(time.perf_counter() + 0.05)
            threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
        for _ in range(500):
            time.sleep(0.01)  # the handler runs between two operations
        return score_rows(*arguments)

    monkeypatch.setattr(scoring, "score_rows", slow)
    assert run(config, tmp_path / "out") == signal.SIGINT
    assert time.perf_counter() - sent[0] < 1
    assert state(tmp_path / "out")[0] == EVERY


# By signals to the command, and by SIGKILL


TOTAL, EVALUATED = 160, 40
# a fresh process forks, so that the imports are paid for once
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import torch._dynamo  # which optimisers import when they are made
sys.modules["matplotlib"] = None  # no picture, as where it is not installed: it would take half of the time
from spacy_elmo.pretraining.config import read_config
from spacy_elmo.pretraining.evaluating import Reporter
from spacy_elmo.pretraining.run import pretrain

config, output = read_config(sys.argv[1]), Path(sys.argv[2])

def steps():
    return sorted(int(path.stem[5:]) for path in output.glob("checkpoints/step-*.h5"))

def run():
    child = os.fork()
    if child == 0:
        try:
            pretrain(config, output, Reporter())
            os._exit(0)
        finally:
            os._exit(1)
    return child

def end(child):
    os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        sys.exit()
    assert status == -signal.SIGKILL, status
    print(steps()[-1] if steps() else 0, flush=True)

began, child = time.monotonic(), run()
while not steps():
    assert os.waitpid(child, os.WNOHANG) == (0, 0)
    time.sleep(0.001)
first = time.monotonic() - began
end(child)
for _ in range(12):
    child = run()
    time.sleep(random.uniform(0, 5 * first))
    end(child)
assert os.waitstatus_to_exitcode(os.waitpid(run(), 0)[1]) == 0
"""


@pytest.fixture(scope="module")
def config_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    config = config_of(
        write_text(folder / "text.txt", 300),
        2 * TOTAL,
        zero_state_share=0.5,
        dropout=0.1,
        accumulate=2,
        seed=3,
        softmax=SoftmaxSettings("sampled", 20),
        schedule=ScheduleSettings(warmup_steps=10),
    )
    config = replace(config, vocabulary=VocabularySettings(100), evaluation=EvaluationSettings(EVALUATED, 4, 20))
    write_config(config, folder / "pretrain.cfg")
    return folder / "pretrain.cfg"


@pytest.fixture(scope="module")
def whole(config_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that never stops."""
    output = tmp_path_factory.mktemp("runs") / "whole"
    finish_here(config_file, output)
    assert [row["step"] for row in metrics(output)] == list(range(EVALUATED, TOTAL + 1, EVALUATED))
    return output


def finish_here(config_file: Path, output: Path) -> str:
    """The same command to its end in this process, on one thread as the others."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run_command("elmo", "pretrain", config_file, output)
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_a_run_that_is_killed_at_random_moments(config_file: Path, whole: Path, tmp_path: Path) -> None:
    """By SIGKILL, from its first moment on, until it comes to its end between two kills."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", KILLER, str(config_file), str(tmp_path / "killed")]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert printed.returncode == 0, printed.stderr
    kills = [int(step) for step in printed.stdout.split()]
    assert kills == sorted(kills)
    assert len(set(kills)) >= 3, "too few kills to test anything"
    assert_same_runs(whole, tmp_path / "killed")


@pytest.mark.slow
def test_a_run_that_is_stopped_and_goes_on(config_file: Path, whole: Path, tmp_path: Path) -> None:
    """As a person does it, by a signal to the command: exit code, what is printed, and the same bits."""
    output, environment, deadline = tmp_path / "stopped", {**os.environ, "OMP_NUM_THREADS": "1"}, time.monotonic() + 120
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(config_file), str(output)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        while not list(output.glob("checkpoints/step-*.h5")):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT, printed
    reached = state(output)[0]
    assert 0 < reached < TOTAL
    assert f"stopped at step {reached}" in printed
    assert "Traceback" not in printed
    assert f"{reached}" in finish_here(config_file, output)
    assert_same_runs(whole, output)


# By an earlier version


@pytest.mark.slow
def test_a_run_of_commit_b76a2b9_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From step 5 to step 10, with sampled words, dropout, carried states, Muon and averaged weights.

    Other processors and versions of torch may round in another way. If a whole run here has other last bits than that
    commit had, the resumed one is only near to it.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copytree(GOLDEN, tmp_path, dirs_exist_ok=True)
    config, before = read_config("run/config.cfg"), metrics(Path("run"))
    for output in ("run", "whole"):
        assert run(config, Path(output)) is None
    assert [row["step"] for row in metrics(Path("run"))] == [4, 8, 10]
    assert metrics(Path("run"))[0] == before[0]
    with np.load(GOLDEN / "state_10.npz") as file:
        expected = {name: file[name] for name in file.files}
    (_, resumed), (_, whole) = state(Path("run")), state(Path("whole"))
    assert bytes(resumed.pop("run")) == bytes(expected.pop("run"))
    whole.pop("run")  # of the settings, and there are new ones since then
    assert (bits(whole) == bits(expected)) == (bits(resumed) == bits(expected))
    assert resumed.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(resumed[name], array, rtol=1e-3, atol=1e-5, err_msg=name)
