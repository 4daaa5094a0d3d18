"""Two runs don't write into one folder."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.errors import CheckpointError
from spacy_elmo.formats import atomic as module
from spacy_elmo.formats.atomic import folder_lock

HOLDER = """
import sys
from pathlib import Path
from spacy_elmo.errors import CheckpointError
from spacy_elmo.formats.atomic import folder_lock
with folder_lock(Path(sys.argv[1]), CheckpointError):
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
        with pytest.raises(CheckpointError, match=message), folder_lock(tmp_path, CheckpointError):
            pytest.fail("not reached")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with folder_lock(tmp_path, CheckpointError):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_it_is_given_free_at_the_end_of_the_block(tmp_path: Path) -> None:
    with (
        folder_lock(tmp_path, CheckpointError),
        pytest.raises(CheckpointError, match=f"the process {os.getpid()}"),
        folder_lock(tmp_path, CheckpointError),
    ):
        pytest.fail("not reached")
    with pytest.raises(KeyError), folder_lock(tmp_path, CheckpointError):
        raise KeyError
    with folder_lock(tmp_path, CheckpointError):
        pass
    (tmp_path / "other").mkdir()
    with folder_lock(tmp_path, CheckpointError), folder_lock(tmp_path / "other", CheckpointError):
        pass


def test_a_holder_that_has_not_said_its_number_yet(tmp_path: Path) -> None:
    with folder_lock(tmp_path, CheckpointError):
        os.truncate(tmp_path / ".lock", 0)
        with (
            pytest.raises(CheckpointError, match="a process that has just begun"),
            folder_lock(tmp_path, CheckpointError),
        ):
            pytest.fail("not reached")


def test_what_killed_runs_left_is_deleted_by_the_holder(tmp_path: Path) -> None:
    left = tmp_path / f".{'0a' * 16}.tmp"
    left.touch()
    with folder_lock(tmp_path, CheckpointError):
        assert not left.exists()
        left.touch()
        with pytest.raises(CheckpointError), folder_lock(tmp_path, CheckpointError):
            pytest.fail("not reached")
        assert left.exists()


@pytest.mark.parametrize("rank", ["0", "1", "x"])
def test_the_environment_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str) -> None:
    """Which process takes it is for the caller to say."""
    monkeypatch.setenv("RANK", rank)
    with folder_lock(tmp_path, CheckpointError), pytest.raises(CheckpointError), folder_lock(tmp_path, CheckpointError):
        pytest.fail("not reached")


def test_folders_that_can_not_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CheckpointError, match="can't be written"), folder_lock(tmp_path / "missing", CheckpointError):
        pytest.fail("not reached")

    def refuse(number: int) -> None:
        def lock(descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(module, "_lock", lock)

    left = tmp_path / f".{'0a' * 16}.tmp"
    left.touch()
    refuse(errno.EOPNOTSUPP)  # a file system without locks
    with folder_lock(tmp_path, CheckpointError):
        assert left.exists()  # another run may be writing it
    refuse(errno.EIO)
    with pytest.raises(CheckpointError, match="Input/output error"), folder_lock(tmp_path, CheckpointError):
        pytest.fail("not reached")
