"""Two runs don't write into one folder."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.errors import CheckpointError
from spacy_elmo.pretraining.run import lock as module
from spacy_elmo.pretraining.run.lock import run_lock

HOLDER = """
import sys
from pathlib import Path
from spacy_elmo.pretraining.run.lock import run_lock
with run_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_another_process_that_holds_it_is_named(tmp_path: Path) -> None:
    """Until it is killed."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    for _ in range(2):  # a refused one leaves the lock as it was
        message = f"another run writes there, the process {process.pid}\\."
        with pytest.raises(CheckpointError, match=message), run_lock(tmp_path):
            pytest.fail("not reached")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with run_lock(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_it_is_given_free_at_the_end_of_the_block(tmp_path: Path) -> None:
    with run_lock(tmp_path), pytest.raises(CheckpointError, match=f"the process {os.getpid()}"), run_lock(tmp_path):
        pytest.fail("not reached")
    with pytest.raises(KeyError), run_lock(tmp_path):
        raise KeyError
    with run_lock(tmp_path):
        pass
    (tmp_path / "other").mkdir()
    with run_lock(tmp_path), run_lock(tmp_path / "other"):
        pass


def test_a_holder_that_has_not_said_its_number_yet(tmp_path: Path) -> None:
    with run_lock(tmp_path):
        os.truncate(tmp_path / ".lock", 0)
        with pytest.raises(CheckpointError, match="a process that has just begun"), run_lock(tmp_path):
            pytest.fail("not reached")


def test_what_killed_runs_left_is_deleted_by_the_holder(tmp_path: Path) -> None:
    left = tmp_path / f".{'0a' * 16}.tmp"
    left.touch()
    with run_lock(tmp_path):
        assert not left.exists()
        left.touch()
        with pytest.raises(CheckpointError), run_lock(tmp_path):
            pytest.fail("not reached")
        assert left.exists()


@pytest.mark.parametrize("rank", ["0", "1", "x"])
def test_the_environment_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str) -> None:
    """Which process takes it is for the caller to say."""
    monkeypatch.setenv("RANK", rank)
    with run_lock(tmp_path), pytest.raises(CheckpointError), run_lock(tmp_path):
        pytest.fail("not reached")


def test_folders_that_can_not_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="can't be written"), run_lock(tmp_path / "missing"):
        pytest.fail("not reached")

    def refuse(number: int) -> None:
        def lock(descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(module, "_lock", lock)

    left = tmp_path / f".{'0a' * 16}.tmp"
    left.touch()
    refuse(errno.EOPNOTSUPP)  # a file system without locks
    with run_lock(tmp_path):
        assert left.exists()  # another run may be writing it
    refuse(errno.EIO)
    with pytest.raises(CheckpointError, match="Input/output error"), run_lock(tmp_path):
        pytest.fail("not reached")
