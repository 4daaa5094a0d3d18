"""Several processes give the results of one. If one of them fails or dies, all end, and one reports the reason."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_run import STEPS, config_of, last_checkpoint, write_text
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.errors import CheckpointError, ElmoError, OtherProcessError, ProcessError, SettingsError
from spacy_elmo.formats.atomic import lock
from spacy_elmo.pretraining import run as loop
from spacy_elmo.pretraining.config import (
    EvaluationSettings,
    OptimizerSettings,
    PathSettings,
    PretrainConfig,
    SoftmaxSettings,
    write_config,
)
from spacy_elmo.pretraining.distributed import environment, processes
from spacy_elmo.pretraining.evaluating import Reporter
from spacy_elmo.pretraining.optimizers import MuonAdamW

pytestmark = pytest.mark.slow

# a new process has the modules imported already, also torch._dynamo, which optimisers import when they are made
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["spacy_elmo.pretraining.run", "torch._dynamo", "matplotlib.figure", "matplotlib.backends.backend_agg"]
)
UPDATES, STREAMS = 6, 8
LONG = 100_000  # updates of a run that the test ends


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> PretrainConfig:
    given = config_of(
        write_text(tmp_path_factory.mktemp("text") / "text.txt", 200),
        streams=STREAMS,
        zero_state_share=0.5,
        total_tokens=UPDATES * STREAMS * STEPS,
        seed=3,
        softmax=SoftmaxSettings("sampled", 20),
    )
    return replace(given, evaluation=EvaluationSettings(UPDATES, 2, 20))


def training(config: PretrainConfig, **changes: Any) -> PretrainConfig:
    return replace(config, training=replace(config.training, **changes))


def run_rank(config: PretrainConfig, output: Path, stop_at: int | None = None) -> list[float]:
    """Run, and return the losses; a SIGTERM comes at a step."""
    losses: list[float] = []

    def record(step: int, tokens: int, total_tokens: int, loss: float, *_: float) -> None:
        losses.append(loss)
        if step == stop_at:
            os.kill(os.getpid(), signal.SIGTERM)

    reporter = Reporter()
    reporter.step = record  # type: ignore[method-assign]
    loop.pretrain(config, output, reporter)
    return losses


def work(rank: int, size: int, port: int, results: Any, task: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """One process, as torchrun would start it."""
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ.update({name: str(number) for name, number in numbers.items()} | {"MASTER_ADDR": "127.0.0.1"})
    torch.set_num_threads(1)
    try:
        results.put((rank, task(*arguments)))
    except ElmoError as error:
        results.put((rank, error))


class Ranks:
    """Processes of one run. arguments: those of the task, for each process."""

    def __init__(self, task: Callable[..., Any], *arguments: tuple[Any, ...]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.results, size = SERVER.Queue(), len(arguments)
        self.processes = [
            SERVER.Process(target=work, args=(rank, size, port, self.results, task, values), daemon=True)
            for rank, values in enumerate(arguments)
        ]
        for process in self.processes:
            process.start()

    def kill(self, rank: int) -> None:
        self.processes[rank].kill()
        self.processes.pop(rank).join()

    def ended(self) -> list[Any]:
        """What the living processes returned or raised, in the order of their ranks."""
        found = dict(self.results.get(timeout=90) for _ in self.processes)
        for process in self.processes:
            process.join(timeout=90)
            assert process.exitcode == 0
        return [found[rank] for rank in sorted(found)]


def run(size: int, config: PretrainConfig, output: Path) -> list[float]:
    """The losses of a run with `size` processes."""
    if size == 1:
        return run_rank(config, output)
    every = Ranks(run_rank, *[(config, output)] * size).ended()
    for losses in every[1:]:
        assert losses == every[0]  # bit by bit, since all use the same gradient
    first: list[float] = every[0]
    return first


def last(output: Path) -> Mapping[str, Any]:
    return last_checkpoint(output)[1]


def card(output: Path) -> str:
    return (output / "model-last" / "README.md").read_text(encoding="utf8")


def perplexities(output: Path) -> list[float]:
    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [row[f"perplexity{direction}"] for row in rows for direction in ("", "_forward", "_backward")]


def wait_for_step(output: Path, step: int) -> None:
    """Wait for a checkpoint of this step or a later one."""
    deadline = time.monotonic() + 90
    while all(int(path.stem.removeprefix("step-")) < step for path in output.glob("checkpoints/step-*.h5")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("kind", "size", "accumulate", "optimizer"),
    [("full", 4, 2, "adagrad"), ("sampled", 2, 1, "adamw"), ("sampled", 2, 1, "muon")],
)
def test_processes_give_the_results_of_one(
    config: PretrainConfig, tmp_path: Path, kind: str, size: int, accumulate: int, optimizer: str
) -> None:
    chosen = training(
        config,
        accumulate=accumulate,
        average_share=0.3,
        total_tokens=UPDATES * STREAMS * STEPS * accumulate,
        softmax=SoftmaxSettings(kind, 20),
        optimizer=replace(config.training.optimizer, name=optimizer),
    )
    alone, several = (run(number, chosen, tmp_path / str(number)) for number in (1, size))
    assert len(alone) == UPDATES
    np.testing.assert_allclose(several, alone, rtol=1e-5)
    np.testing.assert_allclose(perplexities(tmp_path / str(size)), perplexities(tmp_path / "1"), rtol=1e-5)
    one, other = last(tmp_path / "1"), last(tmp_path / str(size))
    assert one.keys() == other.keys()
    told = [re.findall(r"Of all 20 held-out .*", card(tmp_path / str(number))) for number in (1, size)]
    assert told[0] == told[1] != []  # the first process counts what is repeated
    for name, array in one.items():
        if name.startswith(("bilm/", "softmax/", "state/", "average/")):
            np.testing.assert_allclose(other[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
        elif name.startswith("streams/"):
            np.testing.assert_array_equal(other[name], array)


def test_a_process_that_dies_ends_the_run_which_goes_on_with_any_number(config: PretrainConfig, tmp_path: Path) -> None:
    run(1, config, tmp_path / "whole")
    long = training(config, total_tokens=LONG)
    never = replace(long, evaluation=EvaluationSettings(LONG, 2, 20))
    # a run that is too long to end by itself, and then a run of the intended length
    ranks = Ranks(run_rank, *[(never, tmp_path / "dead", 4), (never, tmp_path / "dead", None)])
    assert [len(losses) for losses in ranks.ended()] == [4, 4]  # one process gets a signal, and both stop
    ranks = Ranks(run_rank, *[(never, tmp_path / "killed", None)] * 2)
    wait_for_step(tmp_path / "killed", 2)
    began = time.monotonic()
    ranks.kill(1)
    (error,) = ranks.ended()
    assert re.match(r"another process of this run has died, or can't be reached \([^/]*Connection ", str(error))
    assert time.monotonic() - began < 30
    assert last(tmp_path / "killed")["step"] >= 2
    copied = tmp_path / "without_checkpoints"
    shutil.copytree(tmp_path / "dead", copied, ignore=shutil.ignore_patterns("checkpoints"))
    assert "process 1 finds none, but process 0 finds another" in refused((never, tmp_path / "dead"), (never, copied))
    for size in (1, 4):
        folder = tmp_path / f"goes_on_{size}"
        shutil.copytree(tmp_path / "dead", folder)
        assert last(folder)["step"] == 4
        assert len(run(size, config, folder)) == UPDATES - 4
        np.testing.assert_allclose(perplexities(folder), perplexities(tmp_path / "whole"), rtol=1e-5)


def refused(*arguments: tuple[PretrainConfig, Path]) -> str:
    """The only message of processes with these settings and folders."""
    errors = [error for error in Ranks(run_rank, *arguments).ended() if not isinstance(error, OtherProcessError)]
    assert len(errors) == 1
    assert isinstance(errors[0], ElmoError)
    return str(errors[0])


def test_an_error_is_reported_once(config: PretrainConfig, tmp_path: Path) -> None:
    output = tmp_path / "out"
    assert "training.streams is 7. Expected a multiple of 2" in refused(*[(training(config, streams=7), output)] * 2)
    gone, output = replace(config, paths=PathSettings(str(tmp_path / "gone.txt"))), tmp_path / "second"
    assert "gone.txt" in refused(*[(gone, output)] * 2)
    other = training(config, seed=4)
    assert "process 1 has other settings than process 0" in refused((config, output), (other, output))
    alone = tmp_path / "not_shared"
    assert str(alone) in refused((config, output), (config, alone))
    with_muon = training(config, optimizer=OptimizerSettings("muon"))
    assert str(alone) in refused((with_muon, tmp_path / "with_muon"), (with_muon, alone))
    with lock(output, CheckpointError):
        assert "another run writes there" in refused(*[(config, output)] * 2)


def run_of_another_kind(own: int, config: PretrainConfig, output: Path) -> list[float]:
    """A run in which the process of rank 1 stands for a machine that rounds in another way."""
    if own:
        MuonAdamW.rounding = lambda self: 0  # type: ignore[method-assign]
    return run_rank(config, output)


def test_muon_refuses_machines_that_round_differently(config: PretrainConfig, tmp_path: Path) -> None:
    with_muon = training(config, optimizer=OptimizerSettings("muon"))
    errors = Ranks(run_of_another_kind, *[(rank, with_muon, tmp_path) for rank in (0, 1)]).ended()
    assert [type(error).__name__ for error in errors] == ["OtherProcessError", "SettingsError"]
    assert 'training.optimizer.name is "muon", and process 1 rounds matrix multiplications' in str(errors[1])


def messages(own: int) -> None:
    """Calls every method of the group. Raises OtherProcessError or SettingsError at the end."""
    with processes("cpu") as group:
        assert (group.rank, group.size, group.first) == (own, 3, own == 0)
        a, b = group.sum([torch.tensor([[1.0, 2.0]]) * (own + 1), torch.tensor(0.5)])
        assert a.tolist() == [[6, 12]]
        assert b.item() == 1.5
        assert group.union(torch.tensor([[7, own], [7, 7]])[: own + 1]).tolist() == [0, 1, 2, 7]
        assert group.concatenate(torch.full((2, 1), own), 1).tolist() == [[0, 1, 2]] * 2
        assert (group.largest(own), group.largest(0), group.from_first(own + 0.1)) == (2, 0, 0.1)
        tensor = torch.full((3,), float(own))
        group.copy_first([tensor])
        assert tensor.tolist() == [0, 0, 0]
        with group.together():
            pass
        group.check_alike("a", SettingsError("not seen"))
        with group.together():
            if own:
                raise SettingsError(f"of {own}")


def test_messages() -> None:
    errors = Ranks(messages, (0,), (1,), (2,)).ended()
    assert [type(error).__name__ for error in errors] == ["OtherProcessError", "SettingsError", "OtherProcessError"]
    assert str(errors[0]) == "process 1 of this run has ended with an error, which it prints itself."
    assert str(errors[1]) == "of 1"


def test_one_process_prints_errors(config: PretrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(config, tmp_path / "good.cfg")
    (tmp_path / "bad.cfg").write_text("[paths]\ntrane = 1\n", encoding="utf8")

    def ended(*arguments: object) -> None:
        raise OtherProcessError("told by the other")

    monkeypatch.setattr(loop, "pretrain", ended)
    for variable, value in (("WORLD_SIZE", "2"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(variable, value)
    for rank, name, tells in (("1", "good", False), ("0", "good", False), ("1", "bad", False), ("0", "bad", True)):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("LOCAL_RANK", rank)
        result = CliRunner().invoke(app, ["pretrain", str(tmp_path / f"{name}.cfg"), str(tmp_path / "out")])
        assert (result.exit_code, "trane" in result.output) == (1, tells)
        assert bool(result.output) == tells


def test_torchrun(config: PretrainConfig, tmp_path: Path) -> None:
    long = replace(training(config, total_tokens=LONG), evaluation=EvaluationSettings(LONG, 2, 20))
    write_config(long, tmp_path / "run.cfg")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--monitor-interval", "1"]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "-m", "spacy", "elmo", "pretrain"]
    command += [str(tmp_path / "run.cfg"), str(tmp_path / "run")]
    environment, pipe = {**os.environ, "OMP_NUM_THREADS": "1"}, subprocess.PIPE
    with subprocess.Popen(command, text=True, env=environment, stdout=pipe, stderr=subprocess.STDOUT) as stopped:
        wait_for_step(tmp_path / "run", 2)
        stopped.send_signal(signal.SIGTERM)
        printed, _ = stopped.communicate(timeout=90)
    assert len(re.findall("held-out text", printed)) == 1  # the first process alone tells
    assert re.search(rf"stopped at step {int(last(tmp_path / 'run')['step'])}\b", printed)


GOOD = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (GOOD, (3, 4, 1)),
        ({name: GOOD[name] for name in GOOD if name != "LOCAL_RANK"}, (3, 4, 0)),
        ({}, (0, 1, 0)),
        ({"RANK": "1"}, (0, 1, 0)),
        ({"RANK": "x", "WORLD_SIZE": "1", "LOCAL_RANK": "x"}, (0, 1, 0)),
    ],
)
def test_the_variables_of_torchrun(variables: dict[str, str], expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment() == expected
    if expected == (0, 1, 0):
        with processes("cpu") as group:
            assert (group.rank, group.size) == (0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("WORLD_SIZE", "garbage"), ("RANK", "4"), ("RANK", None), ("LOCAL_RANK", "x"), ("MASTER_ADDR", None)],
)
def test_variables_that_torchrun_would_not_set(name: str, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    given = GOOD | ({} if value is None else {name: value})
    for variable in given:
        if variable != name or value is not None:
            monkeypatch.setenv(variable, given[variable])
    with pytest.raises(ProcessError, match=f"{name} is {'not set' if value is None else repr(value)}.* torchrun sets"):
        environment()
