"""A new run replaces no file that is not of a run."""

from pathlib import Path

import pytest

from spacy_elmo.errors import SettingsError
from spacy_elmo.pretraining.run.output import WRITTEN, refuse_foreign, refuse_other_folder, refuse_own_inputs
from spacy_elmo.pretraining.settings.sections import PathSettings


@pytest.mark.parametrize("name", WRITTEN)
def test_files_that_a_run_would_replace(tmp_path: Path, name: str) -> None:
    refuse_foreign(tmp_path / "new")
    (tmp_path / "notes.txt").touch()
    refuse_foreign(tmp_path)
    (tmp_path / name).touch()
    with pytest.raises(SettingsError, match=f"holds {name}, but no run.json"):
        refuse_foreign(tmp_path)


@pytest.mark.parametrize("own", ["run.json", "corpus/meta.json", "checkpoints/a"])
def test_the_folder_of_a_run(tmp_path: Path, own: str) -> None:
    (tmp_path / own).parent.mkdir(exist_ok=True)
    (tmp_path / own).touch()
    (tmp_path / "vocabulary.txt").touch()
    refuse_foreign(tmp_path)
    refuse_other_folder(tmp_path)


def test_a_restart_in_another_folder(tmp_path: Path) -> None:
    refuse_other_folder(tmp_path)  # empty
    refuse_other_folder(tmp_path / "new")
    (tmp_path / ".lock").touch()
    refuse_other_folder(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(SettingsError, match="Expected one for --restart"):
        refuse_other_folder(tmp_path)


def test_what_a_restart_would_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "mine" / "model-best").mkdir(parents=True)
    refuse_own_inputs(Path("runs/mine"), PathSettings("text/*.txt", "heldout.txt", init="runs/other"))
    refuse_own_inputs(tmp_path, PathSettings("/text/*.txt", init="en_mini"))  # a name, no folder
    for paths, name in (
        (PathSettings("text.txt", init="runs/mine/model-best"), "init"),
        (PathSettings("text.txt", init="runs/../runs/mine"), "init"),
        (PathSettings("runs/mine/*.txt"), "train"),
        (PathSettings("text.txt", str(tmp_path / "runs/mine/heldout.txt")), "heldout"),
        (PathSettings("text.txt", vocabulary="runs/mine/vocabulary.txt"), "vocabulary"),
    ):
        with pytest.raises(SettingsError, match=rf"paths\.{name} is .* the folder that --restart renames"):
            refuse_own_inputs(Path("runs/mine"), paths)
