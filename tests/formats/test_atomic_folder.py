"""Folders that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.atomic_folder import filling


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_new_folder(tmp_path: Path) -> None:
    with filling(tmp_path / "a" / "b", ("x",), WeightsError) as temporary:
        (temporary / "x").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert contents(tmp_path) == {"a/b/x": "1"}


def test_one_that_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    for name in ("x", "y", "other"):
        (folder / name).write_text("old")
    with filling(folder, ("x", "y", "z"), WeightsError) as temporary:
        (temporary / "x").write_text("new")
        assert contents(folder) == {"x": "old", "y": "old", "other": "old"}
    assert contents(tmp_path) == {"f/x": "new", "f/other": "old"}


def write_and_fail(folder: Path) -> None:
    with filling(folder, ("x",), WeightsError) as temporary:
        (temporary / "x").write_text("new")
        (temporary / "gone").unlink()


@pytest.mark.parametrize("there", [False, True])
def test_an_error_leaves_all_as_it_was(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "f"
    if there:
        folder.mkdir()
        (folder / "x").write_text("old")
    with pytest.raises(FileNotFoundError):
        write_and_fail(folder)
    assert contents(tmp_path) == ({"f/x": "old"} if there else {})
    assert len(list(tmp_path.iterdir())) == there


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("notes")
    with pytest.raises(WeightsError, match="f: can't be written"), filling(tmp_path / "f", (), WeightsError) as made:
        (made / "x").write_text("new")
    assert contents(tmp_path) == {"f": "notes"}
    with pytest.raises(WeightsError, match="can't be written"), filling(tmp_path / "f" / "g", (), WeightsError):
        pass
