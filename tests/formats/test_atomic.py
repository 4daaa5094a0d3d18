"""Files and folders that replace others when they are complete, what killed processes leave, and locks."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import spacy_elmo
from spacy_elmo.errors import CheckpointError, VectorsError, WeightsError
from spacy_elmo.formats import atomic
from spacy_elmo.formats.atomic import folder_lock, remove_leftovers, remove_leftovers_of, replacing, replacing_folder

# An empty package in the place of spacy_elmo, whose own __init__ loads torch and spaCy.
START = f"""
import sys, types
from pathlib import Path
package = types.ModuleType("spacy_elmo")
package.__path__ = [{str(Path(spacy_elmo.__file__).parent)!r}]
sys.modules["spacy_elmo"] = package
from spacy_elmo.errors import CheckpointError
from spacy_elmo.formats.atomic import folder_lock, replacing
"""


def test_what_a_process_prints_to_is_not_replaced(tmp_path: Path) -> None:
    """/dev/stdout is the file that a shell has opened, so that its earlier lines would be lost."""
    log = tmp_path / "log"
    log.write_text("earlier\n")
    code = """
for name in ("/dev/stdout", "/dev/stderr", "log"):
    try:
        with replacing(name, CheckpointError) as temporary:
            temporary.write_text("new")
    except CheckpointError as error:
        print(error, flush=True)
"""
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", START + code], cwd=tmp_path, stdout=file, stderr=file, check=True)
    told = log.read_text()
    assert told.startswith("earlier\n")
    assert told.count("log: standard output or standard error goes to it") == 3
    assert os.listdir(tmp_path) == ["log"]


def test_where_no_file_can_be_written(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, match in (
        (tmp_path / "no" / "file", r"the folder .*no does not exist"),
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "no regular file"),
    ):
        with pytest.raises(VectorsError, match=match), replacing(path, VectorsError):
            pytest.fail("not reached")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "a").symlink_to("new")  # a link to nothing
    with replacing(tmp_path / "a", VectorsError) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "new").read_text() == "new"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mounted", [False, True])
def test_an_existing_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounted: bool) -> None:
    """One that is mounted is a volume of a container, for example: nothing can be moved into it from outside."""
    folder = tmp_path / "f"
    folder.mkdir()
    for name in ("x", "y", "other"):
        (folder / name).write_text("old")
    monkeypatch.setattr(os.path, "ismount", lambda path: mounted and Path(path) == folder)
    with replacing_folder(folder, ("x", "y", "z"), WeightsError) as temporary:
        assert temporary.parent == (folder if mounted else tmp_path)
        (temporary / "x").write_text("new")
        assert {"f/x": "old", "f/y": "old", "f/other": "old"}.items() <= contents(tmp_path).items()
    assert contents(tmp_path) == {"f/x": "new", "f/other": "old"}
    assert sorted(os.listdir(folder)) == ["other", "x"]


@pytest.mark.parametrize("exists", [False, True])
def test_an_error_changes_nothing(tmp_path: Path, exists: bool) -> None:
    """Its message names the folder that was asked for, as the temporary one is gone when it is read."""
    folder = tmp_path / "a" / "b" / "f"
    if exists:
        folder.mkdir(parents=True)
        (folder / "x").write_text("old")

    def fail() -> None:
        with replacing_folder(folder, ("x",), WeightsError) as temporary:
            (temporary / "x").write_text("new")
            raise WeightsError(f"{temporary / 'x'}: wrong")

    with pytest.raises(WeightsError) as caught:
        fail()
    assert str(caught.value) == f"{folder / 'x'}: wrong"
    assert contents(tmp_path) == ({"a/b/f/x": "old"} if exists else {})
    assert len(list(tmp_path.rglob("*"))) == (4 if exists else 0)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("notes")
    for folder in (tmp_path / "f", tmp_path / "f" / "g"):
        refusal = pytest.raises(WeightsError, match="can't be written")
        with refusal, replacing_folder(folder, (), WeightsError) as temporary:
            (temporary / "x").write_text("new")
    assert contents(tmp_path) == {"f": "notes"}


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


def test_what_is_left_of_one_file_goes(tmp_path: Path) -> None:
    names = [
        f".out.hdf5.{DIGITS}.tmp",
        f"..out.hdf5.{DIGITS}.tmp.{DIGITS}.tmp",
        f".other.hdf5.{DIGITS}.tmp",
        "out.hdf5",
    ]
    for name in names:
        (tmp_path / name).touch()
    remove_leftovers_of(tmp_path / "out.hdf5", CheckpointError)
    assert sorted(os.listdir(tmp_path)) == sorted(names[2:])
    remove_leftovers_of(tmp_path / "none" / "out.hdf5", CheckpointError)


def refused(folder: Path, message: str) -> None:
    with pytest.raises(CheckpointError, match=message), folder_lock(folder, CheckpointError):
        pytest.fail("not reached")


def test_another_process_that_holds_it_is_named(tmp_path: Path) -> None:
    """Until it is killed."""
    code = """
with folder_lock(Path(sys.argv[1]), CheckpointError):
    print("held", flush=True)
    sys.stdin.read()
"""
    command = [sys.executable, "-c", START + code, str(tmp_path)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    for _ in range(2):  # a refused one leaves the lock as it was
        refused(tmp_path, f"another run writes there, the process {process.pid}\\.")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with folder_lock(tmp_path, CheckpointError):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_it_is_given_free_at_the_end_of_the_block(tmp_path: Path) -> None:
    with folder_lock(tmp_path, CheckpointError):
        refused(tmp_path, f"the process {os.getpid()}")
        os.truncate(tmp_path / ".lock", 0)  # it has not said its number yet
        refused(tmp_path, "a process that has just begun")
    with pytest.raises(KeyError), folder_lock(tmp_path, CheckpointError):
        raise KeyError
    left = tmp_path / LEFT[0]  # by a run that was killed
    left.touch()
    with folder_lock(tmp_path, CheckpointError):
        assert not left.exists()
    (tmp_path / "other").mkdir()
    with folder_lock(tmp_path, CheckpointError), folder_lock(tmp_path / "other", CheckpointError):
        pass


def test_folders_that_can_not_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused(tmp_path / "missing", "can't be written")

    def lock(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic, "_lock", lock)
    left = tmp_path / LEFT[0]
    left.touch()
    number = errno.EOPNOTSUPP  # a file system without locks
    with folder_lock(tmp_path, CheckpointError):
        assert left.exists()  # another run may be writing it
    number = errno.EIO
    refused(tmp_path, "Input/output error")
