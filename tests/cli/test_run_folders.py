"""Commands that are given the folder of a pretraining run in the place of a model's."""

from __future__ import annotations

from pathlib import Path

import pytest
from embedded_case import model_of
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a run leaves it after its first evaluation, as far as the commands look at it."""
    (tmp_path / "mine").mkdir()
    for name in ("config.cfg", "run.json", "vocabulary.txt"):
        (tmp_path / "mine" / name).write_text("", encoding="utf8")
    model_of().save(tmp_path / "mine" / "model-best")
    (tmp_path / "text.txt").write_text("the cat sat\n", encoding="utf8")
    return tmp_path / "mine"


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def test_info_tells_of_its_best_model(folder: Path) -> None:
    output = run("info", folder)
    assert str(folder / "model-best" / "options.json") in output
    assert "softmax one vector for each word" in output


def test_info_before_the_first_evaluation(folder: Path) -> None:
    (folder / "model-best").rename(folder / "other")
    assert "has not written model-best yet" in run("info", folder, code=1)


@pytest.mark.parametrize("model", [".", "model-best", "model-last"])
def test_others_before_the_first_evaluation(folder: Path, tmp_path: Path, model: str) -> None:
    (folder / "model-best").rename(folder / "other")
    for arguments in (("evaluate", folder / model, tmp_path / "text.txt"), ("pack", folder / model, tmp_path / "new")):
        output = run(*arguments, code=1)
        assert "has not written model-best yet" in output
        assert "lower evaluation.every" in output
    assert not (tmp_path / "new").exists()


def test_others_name_its_best_model(folder: Path, tmp_path: Path) -> None:
    expected = f"give {folder / 'model-best'}"
    for arguments in (("evaluate", folder, tmp_path / "text.txt"), ("pack", folder, tmp_path / "packed")):
        assert expected.replace(" ", "") in run(*arguments, code=1).replace(" ", "")
    config = tmp_path / "tune.cfg"
    written = ("init-pretrain-config", config, "--train", tmp_path / "text.txt", "--init")
    output = run(*written, folder, code=1)
    assert expected.replace(" ", "") in output.replace(" ", "")
    assert "there is no softmax" not in output
    assert not config.exists()
    run(*written, folder / "model-best")
    output = run("pretrain", config, tmp_path / "out", "--paths.init", folder, code=1)
    assert expected.replace(" ", "") in output.replace(" ", "")
    assert not (tmp_path / "out").exists()
