"""A new run replaces no file that is not of a run."""

from pathlib import Path

import pytest

from spacy_elmo.errors import SettingsError
from spacy_elmo.pretraining.starting import WRITTEN, refuse_foreign, refuse_other_folder


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
