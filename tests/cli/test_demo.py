"""`elmo demo`: what it says of a folder that can't be made."""

from pathlib import Path

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point


@pytest.mark.parametrize("place", ["file/out", "file/out/deeper"])
def test_a_folder_that_can_not_be_made(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("", encoding="utf8")
    result = CliRunner().invoke(app, ["elmo", "demo", str(tmp_path / place)])
    output = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "this folder can't be made (Not a directory)" in output
    assert "give another folder" in output
    assert "Errno" not in output
