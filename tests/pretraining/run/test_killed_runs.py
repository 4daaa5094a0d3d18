"""A run that is killed again and again, and gone on with, ends in the same bits as one that never stopped."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from commands import run

from spacy_elmo.pretraining.checkpoint import Checkpoints

pytestmark = pytest.mark.slow

TOTAL, EVERY, CHECKPOINT_EVERY = 160, 40, 4
CONFIG = """
[paths]
train = "{text}"

[corpus]
heldout_share = 0.1
shuffle_block = 32

[vocabulary]
size = 100

[bilm]

[bilm.lstm]
dim = 16
projection_dim = 8
n_layers = 2
cell_clip = 3
proj_clip = 3
use_skip_connections = true

[bilm.char_cnn]
embedding = {{"dim": 4}}
filters = [[1, 4], [2, 8]]
n_highway = 1
n_characters = 262
max_characters_per_token = 50
activation = "relu"

[training]
streams = 4
steps = 5
zero_state_share = 0.5
dropout = 0.1
accumulate = 2
total_tokens = {tokens}
workers = 1
precision = "float32"
seed = 3

[training.softmax]
kind = "sampled"
negatives = 20

[training.schedule]
warmup_steps = 10

[evaluation]
every = {every}
checkpoint_every = {checkpoint_every}
sentences = 20
"""
# a fresh process forks, so that the imports are paid for once
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import torch._dynamo  # which optimisers import when they are made
sys.modules["matplotlib"] = None  # no picture, as where it is not installed: it would take half of the time
from spacy_elmo.pretraining.config_file import read_config
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.pretraining.metrics import Reporter

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
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    random = np.random.default_rng(0)
    words = [f"word{k}" for k in range(150)]
    lines = [" ".join(words[k % 150] for k in random.zipf(1.3, random.integers(3, 12))) for _ in range(300)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    settings = {"text": folder / "text.txt", "every": EVERY, "checkpoint_every": CHECKPOINT_EVERY}
    text = CONFIG.format(tokens=TOTAL * 4 * 5 * 2, **settings)
    (folder / "pretrain.cfg").write_text(text, encoding="utf8")
    return folder / "pretrain.cfg"


@pytest.fixture(scope="module")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that never stops."""
    output = tmp_path_factory.mktemp("runs") / "whole"
    finish_here(config, output)
    assert [row["step"] for row in metrics(output)] == list(range(EVERY, TOTAL + 1, EVERY))
    files = {"weights.hdf5", "softmax.hdf5", "options.json", "vocabulary.txt"}
    assert files <= model(output / "model-last").keys() & model(output / "model-best").keys()
    return output


def start(config: Path, output: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "spacy", "elmo", "pretrain", str(config), str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def finish(process: subprocess.Popen[str], code: int) -> str:
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == code, printed
    assert "Traceback" not in printed
    return printed


def finish_here(config: Path, output: Path) -> str:
    """The same command to its end in this process, on one thread as the others."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run("elmo", "pretrain", config, output)
    finally:
        torch.set_num_threads(before)


def last_step(output: Path) -> int:
    return max((int(path.stem.removeprefix("step-")) for path in output.glob("checkpoints/step-*.h5")), default=0)


def wait_for_step(process: subprocess.Popen[str], output: Path, step: int) -> None:
    """Until there is a checkpoint of this step or a later one."""
    deadline = time.monotonic() + 120
    while last_step(output) < step:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.001)


def metrics(output: Path) -> list[dict[str, Any]]:
    """Without what depends on the clock."""
    rows = [json.loads(line) for line in (output / "metrics.jsonl").read_text(encoding="utf8").splitlines()]
    return [{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second")} for row in rows]


def arrays_of(path: Path) -> dict[str, bytes]:
    """Each dataset's type, shape and bytes."""
    found: dict[str, bytes] = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = f"{item.dtype} {item.shape} ".encode() + np.asarray(item[()]).tobytes()

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def model(folder: Path) -> dict[str, Any]:
    """All files of a model but its card, which tells the hours."""
    return {
        path.name: arrays_of(path) if path.suffix == ".hdf5" else path.read_bytes()
        for path in folder.iterdir()
        if path.name != "README.md"
    }


def state(output: Path) -> tuple[int, dict[str, bytes]]:
    """The last checkpoint, without what depends on the clock."""
    found = Checkpoints(output / "checkpoints").latest(pytest.fail)
    assert found is not None
    return found[0], {name: array.tobytes() for name, array in found[1].items() if name != "progress/seconds"}


def assert_same_runs(whole: Path, other: Path) -> None:
    assert metrics(whole) == metrics(other)
    for name in ("model-last", "model-best"):
        assert model(whole / name) == model(other / name)
    assert state(whole) == state(other)
    assert names(whole) == names(other)  # nothing half-written is left


def names(output: Path) -> list[str]:
    return sorted(str(path.relative_to(output)) for path in output.rglob("*") if path.name != "curve.png")


def test_a_run_that_is_killed_at_random_moments(config: Path, whole: Path, tmp_path: Path) -> None:
    """By SIGKILL, from its first moment on, until it comes to its end between two kills."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-c", KILLER, str(config), str(tmp_path / "killed")]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert printed.returncode == 0, printed.stderr
    kills = [int(step) for step in printed.stdout.split()]
    assert kills == sorted(kills)
    assert len(set(kills)) >= 3, "too few kills to test anything"
    assert_same_runs(whole, tmp_path / "killed")


def test_a_run_that_is_stopped_and_goes_on(config: Path, whole: Path, tmp_path: Path) -> None:
    """As a person does it, by signals to the command: exit codes, what is printed, and the same bits."""
    output = tmp_path / "stopped"
    random = np.random.default_rng()
    for number, step in ((signal.SIGTERM, 1), (signal.SIGINT, TOTAL // 2)):
        process, before = start(config, output), last_step(output)
        wait_for_step(process, output, max(step, before + 1))
        time.sleep(random.uniform(0, 0.03))
        process.send_signal(number)
        printed = finish(process, 128 + number)
        reached = last_step(output)
        assert before < reached < TOTAL
        assert f"stopped at step {reached}" in printed
    assert f"{reached}" in finish_here(config, output)
    assert_same_runs(whole, output)
