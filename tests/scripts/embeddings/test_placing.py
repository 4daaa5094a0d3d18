"""A folder that was made elsewhere is put in its place as a whole, or the earlier one stays."""

from pathlib import Path

import pytest

from scripts.embeddings import placing
from scripts.embeddings.placing import place
from spacy_elmo.errors import CommandError


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "new").write_text("new")
    return tmp_path / "made"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_place(made: Path, tmp_path: Path) -> None:
    output = tmp_path / "assets" / "vectors"
    place(made, output)
    (output / "old").touch()
    place(made, output)
    assert names(output) == ["new"]
    assert names(output.parent) == ["vectors"]


def test_a_full_disk(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "assets" / "vectors"
    output.mkdir(parents=True)
    (output / "old").touch()

    def fail(source: Path, target: Path) -> None:
        target.mkdir()
        (target / "part").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(placing.shutil, "copytree", fail)
    with pytest.raises(CommandError, match="No space left"):
        place(made, output)
    assert names(output) == ["old"]
    assert names(output.parent) == ["vectors"]
