"""Folders whose files are replaced together, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.atomic import replacing_folder


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
