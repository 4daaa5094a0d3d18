"""Files that replace others when they are complete."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats.atomic import replacing, writing


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
