"""Files and folders that replace others when they are complete, what killed processes leave, and locks."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from spacy_elmo.errors import CheckpointError, VectorsError, WeightsError
from spacy_elmo.formats import atomic
from spacy_elmo.formats.atomic import lock, remove_leftovers, replacing, replacing_folder

START = """
import sys
from pathlib import Path
from spacy_elmo.errors import CheckpointError
from spacy_elmo.formats.atomic import lock, replacing
"""


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
LEFT = [f".{DIGITS}.tmp", f".corpus.{DIGITS}.tmp"]
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


def held(path: Path) -> AbstractContextManager[None]:
    return lock(path, CheckpointError)


def test_what_is_left_of_one_file_goes(tmp_path: Path) -> None:
    """A name may be the begin of another one, whose file another process may be writing."""
    names = [
        f".out.{DIGITS}.tmp",
        f"..out.{DIGITS}.tmp.{DIGITS}.tmp",
        f".out.hdf5.{DIGITS}.tmp",
        f"..out.hdf5.{DIGITS}.tmp.{DIGITS}.tmp",
        f".other.{DIGITS}.tmp",
        "out.hdf5",
    ]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / f".out.{DIGITS[::-1]}.tmp").mkdir()
    with held(tmp_path / "out"):
        assert sorted(os.listdir(tmp_path)) == sorted([".out.lock", *names[2:]])
    with held(tmp_path / "none" / "out.hdf5"):
        pass
    assert sorted(os.listdir(tmp_path)) == sorted(names[2:])


@contextmanager
def another_process(path: Path, code: str = "with lock(sys.argv[1], CheckpointError):") -> Iterator[subprocess.Popen]:
    """A process that holds the lock of a file or folder. It is killed at the end."""
    code = f"{START}{code}\n    print('held', flush=True)\n    sys.stdin.read()\n"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("kind", ["folder", "new file with a long name"])
def test_another_process_that_holds_it_is_named(tmp_path: Path, kind: str) -> None:
    """Until it is killed. Then all that it has left goes."""
    path = tmp_path / ("out" if kind == "folder" else "x" * 250)
    if kind == "folder":
        path.mkdir()
    before = os.listdir(tmp_path)
    with another_process(path) as process:
        for _ in range(2):  # a refused one leaves the lock as it was
            with (
                pytest.raises(CheckpointError, match=f"another run writes there, the process {process.pid}\\."),
                held(path),
            ):
                pytest.fail("not reached")
        with held(tmp_path / "other"):  # beside it
            pass
    assert os.listdir(tmp_path) != before
    with held(path):
        assert len(os.listdir(tmp_path)) == len(before) + 1
    assert os.listdir(tmp_path) == before


def test_what_a_living_process_writes_in_a_folder_stays(tmp_path: Path) -> None:
    (tmp_path / LEFT[0]).touch()
    with another_process(tmp_path / "a", "with replacing(sys.argv[1], CheckpointError) as path:\n    path.touch()"):
        with held(tmp_path):
            written = {path.name for path in tmp_path.iterdir()}
        assert len(written) == 2
        assert LEFT[0] not in written
    with held(tmp_path):
        assert os.listdir(tmp_path) == []


def test_it_is_given_free_at_the_end_of_the_block(tmp_path: Path) -> None:
    folder, others = tmp_path / "f", pytest.raises(CheckpointError, match="this process writes there already")
    with held(folder):
        assert (tmp_path / ".f.lock").read_text() == f"{os.getpid()}\n"
        with others, held(folder):
            pytest.fail("not reached")
        folder.mkdir()
        with held(folder / "inside"), replacing(folder / "inside", CheckpointError) as temporary:  # no lock of its own
            assert os.listdir(folder) == []
            temporary.touch()
        with pytest.raises(KeyError), held(tmp_path / "other"):
            raise KeyError
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["f", "inside"]


def test_many_processes_after_each_other(tmp_path: Path) -> None:
    """None is in the block together with another one, though each deletes the lock's file."""
    code = """
import os, random
rest = 20
while rest:
    try:
        with lock("out", CheckpointError):
            os.close(os.open("inside", os.O_CREAT | os.O_EXCL))
            os.unlink("inside")
            rest -= 1
    except CheckpointError:
        pass
"""
    runs = [subprocess.Popen([sys.executable, "-c", START + code], cwd=tmp_path) for _ in range(3)]
    assert [run.wait() for run in runs] == [0] * 3
    assert os.listdir(tmp_path) == []


def test_a_folder_beside_which_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    with held(folder):
        assert os.listdir(folder) == [".lock"]
    assert os.listdir(folder) == []


def test_what_can_not_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    refused = pytest.raises(CheckpointError, match="can't be written")
    with refused, held(tmp_path / "file" / "out"):
        pytest.fail("not reached")

    numbers = [errno.EIO, errno.ENOLCK, errno.EOPNOTSUPP]

    def no_lock(descriptor: int) -> None:
        number = numbers.pop()
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic, "_lock", no_lock)
    left = tmp_path / f".file.{DIGITS}.tmp"
    left.touch()
    for _ in range(2):  # file systems without locks
        with held(tmp_path / "file"):
            assert left.exists()  # another run may be writing it
    with pytest.raises(CheckpointError, match="Input/output error"), held(tmp_path / "file"):
        pytest.fail("not reached")
    monkeypatch.undo()
    with held(tmp_path / "file"):
        pass
    assert os.listdir(tmp_path) == ["file"]
