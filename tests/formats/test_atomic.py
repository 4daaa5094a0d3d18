"""Files and folders that replace others when they are complete, what killed processes leave, and locks."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.errors import CheckpointError, VectorsError, WeightsError
from spacy_elmo.formats import atomic
from spacy_elmo.formats.atomic import folder_lock, remove_leftovers, replacing, replacing_folder, writing


def test_a_read_only_file_system_gets_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There even the deletion of a file that does not exist is an error, which must not replace the first one."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)
    path = tmp_path / "file"
    with (
        pytest.raises(VectorsError, match=r"file: can't be written .*Read-only"),
        replacing(path, VectorsError),
        writing(path, VectorsError),
    ):
        refuse()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "log"])
def test_what_a_process_prints_to_is_not_replaced(tmp_path: Path, name: str) -> None:
    """/dev/stdout is the file that a shell has opened, so that its earlier lines would be lost."""
    log = tmp_path / "log"
    log.write_text("earlier\n")
    code = (
        "from spacy_elmo.errors import VectorsError\n"
        "from spacy_elmo.formats.atomic import replacing\n"
        f"with replacing({name!r}, VectorsError) as temporary:\n"
        "    temporary.write_text('new')\n"
    )
    with log.open("ab") as file:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdout=file, stderr=file, check=False)
    assert done.returncode == 1
    told = log.read_text()
    assert told.startswith("earlier\n")
    assert "log: standard output or standard error goes to it" in told
    assert os.listdir(tmp_path) == ["log"]


def test_where_no_file_can_be_written(tmp_path: Path) -> None:
    for path, match in ((tmp_path / "no" / "file", r"the folder .*no does not exist"), (tmp_path, "it is a folder")):
        with pytest.raises(VectorsError, match=match), replacing(path, VectorsError):
            pytest.fail("not reached")


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VectorsError, match="no regular file"), replacing(tmp_path / "pipe", VectorsError):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_links_that_form_a_loop(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(VectorsError, match="form a loop"), replacing(tmp_path / "a", VectorsError) as temporary:
        temporary.write_text("new")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    assert (tmp_path / "a").is_symlink()


def test_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("new")
    with replacing(tmp_path / "a", VectorsError) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "new").read_text() == "new"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder(tmp_path: Path) -> None:
    with replacing_folder(tmp_path / "a" / "b", ("x",), WeightsError) as temporary:
        (temporary / "x").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert contents(tmp_path) == {"a/b/x": "1"}


def test_an_existing_folder(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    for name in ("x", "y", "other"):
        (folder / name).write_text("old")
    with replacing_folder(folder, ("x", "y", "z"), WeightsError) as temporary:
        (temporary / "x").write_text("new")
        assert contents(folder) == {"x": "old", "y": "old", "other": "old"}
    assert contents(tmp_path) == {"f/x": "new", "f/other": "old"}


def test_a_mounted_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A volume of a container, for example: nothing can be moved into it from the folder around it."""
    folder = tmp_path / "f"
    folder.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)
    with replacing_folder(folder, ("x",), WeightsError) as temporary:
        assert temporary.parent == folder
        (temporary / "x").write_text("new")
    assert contents(tmp_path) == {"f/x": "new"}
    assert len(list(folder.iterdir())) == 1


def write_and_fail(folder: Path) -> None:
    with replacing_folder(folder, ("x",), WeightsError) as temporary:
        (temporary / "x").write_text("new")
        (temporary / "missing").unlink()


def test_an_error_leaves_no_folders(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError):
        write_and_fail(tmp_path / "a" / "b" / "c" / "d")
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


@pytest.mark.parametrize("exists", [False, True])
def test_an_error_changes_nothing(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "f"
    if exists:
        folder.mkdir()
        (folder / "x").write_text("old")
    with pytest.raises(FileNotFoundError):
        write_and_fail(folder)
    assert contents(tmp_path) == ({"f/x": "old"} if exists else {})
    assert len(list(tmp_path.iterdir())) == exists


def refuse(folder: Path) -> None:
    with replacing_folder(folder, (), WeightsError) as temporary:
        raise WeightsError(f"{temporary / 'x'}: can't be written")


def test_an_error_names_the_folder_that_was_asked_for(tmp_path: Path) -> None:
    """The temporary folder is gone when the message is read."""
    with pytest.raises(WeightsError) as caught:
        refuse(tmp_path / "f")
    assert str(caught.value) == f"{tmp_path / 'f' / 'x'}: can't be written"


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("notes")
    refusal = pytest.raises(WeightsError, match="f: can't be written")
    with refusal, replacing_folder(tmp_path / "f", (), WeightsError) as temporary:
        (temporary / "x").write_text("new")
    assert contents(tmp_path) == {"f": "notes"}
    refusal = pytest.raises(WeightsError, match="can't be written")
    with refusal, replacing_folder(tmp_path / "f" / "g", (), WeightsError):
        pass


DIGITS = "0123456789abcdef" * 2
LEFT = [f".{DIGITS}.tmp", f".corpus.{DIGITS}.tmp", f".corpus.{DIGITS}.old"]
MINE = [".lock", ".notes.tmp", f"{DIGITS}.tmp", f".{DIGITS}.txt", f".{DIGITS}0.tmp", f".{DIGITS.upper()}.tmp", "a.old"]


def test_only_what_is_half_written_goes(tmp_path: Path) -> None:
    inside = tmp_path / "model-last"
    for folder in (tmp_path, inside):
        folder.mkdir(exist_ok=True)
        for name in [*LEFT, *MINE]:
            (folder / name).write_text("text")
    deeper = inside / "deeper"
    for folder in (tmp_path / f".{DIGITS[::-1]}.tmp", deeper):
        folder.mkdir()
        (folder / LEFT[0]).write_text("text")
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("text")
    (tmp_path / f".link.{DIGITS}.tmp").symlink_to(elsewhere)
    remove_leftovers(tmp_path, CheckpointError)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*MINE, "model-last"])
    assert sorted(path.name for path in inside.iterdir()) == sorted([*MINE, "deeper"])
    assert [path.name for path in deeper.iterdir()] == [LEFT[0]]
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]


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

        monkeypatch.setattr(atomic, "_lock", lock)

    left = tmp_path / f".{'0a' * 16}.tmp"
    left.touch()
    refuse(errno.EOPNOTSUPP)  # a file system without locks
    with folder_lock(tmp_path, CheckpointError):
        assert left.exists()  # another run may be writing it
    refuse(errno.EIO)
    with pytest.raises(CheckpointError, match="Input/output error"), folder_lock(tmp_path, CheckpointError):
        pytest.fail("not reached")
