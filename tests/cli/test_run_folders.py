"""Commands that are given the folder of a pretraining run in the place of a model's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from embedded_case import model_of
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.pretraining.model.language_model import LanguageModel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a run leaves it after its first evaluation, as far as the commands look at it."""
    (tmp_path / "mine").mkdir()
    for name in ("config.cfg", "run.json", "vocabulary.txt"):
        (tmp_path / "mine" / name).write_text("", encoding="utf8")
    model_of().save(tmp_path / "mine" / "model-best")
    (tmp_path / "text.txt").write_text("the cat sat\nthe dog sat\n", encoding="utf8")
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


def test_others_take_its_best_model(folder: Path, tmp_path: Path) -> None:
    best, text = folder / "model-best", tmp_path / "text.txt"
    scores = [json.loads(run("evaluate", model, text, "--json")) for model in (folder, best)]
    assert scores[0]["zero_state"] == scores[1]["zero_state"]
    for model, packed in ((folder, "one"), (best, "two")):
        run("pack", model, tmp_path / packed)
    for name in ("weights.hdf5", "softmax.hdf5"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_tuning_begins_with_its_best_model(folder: Path, tmp_path: Path) -> None:
    config, output = tmp_path / "tune.cfg", tmp_path / "out"
    run("init-pretrain-config", config, "--train", tmp_path / "text.txt", "--init", folder)
    run("pretrain", config, output, "--training.total_tokens", "8", "--training.optimizer.learning_rate", "1e-30")
    before, after = LanguageModel.load(folder), LanguageModel.load(output)
    assert before.words == after.words
    for name, values in before.bilm.state_dict().items():
        assert torch.equal(values, after.bilm.state_dict()[name]), name


def test_a_config_replaces_no_file_of_a_model(folder: Path, tmp_path: Path) -> None:
    text, best = tmp_path / "text.txt", folder / "model-best" / "options.json"
    for path in (best, folder / "config.cfg"):
        written = ("init-pretrain-config", path, "--train", text, "--init", folder, "--force")
        assert "the file to read and the file to write are the same" in run(*written, code=1)
