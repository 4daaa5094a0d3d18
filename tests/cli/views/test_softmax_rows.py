"""`elmo info` on a softmax and the words beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from embedded_case import OPTIONS, WORDS, embed, make_package, model_of
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.modules.softmax import AdaptiveSoftmax
from spacy_elmo.pretraining.language_model import LanguageModel, write_output_layer


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


def run(*paths: Path | str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", "info", *map(str, paths)])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def adaptive(width: int, cutoff: int = 4) -> AdaptiveSoftmax:
    layer = AdaptiveSoftmax(len(WORDS), width, [cutoff])
    layer.reset_parameters(generator=torch.Generator().manual_seed(1))
    return layer


def test_a_folder_with_its_softmax(model: Path) -> None:
    output = run(model)
    assert f"{(model / 'softmax.hdf5').stat().st_size:,} bytes" in output
    told = "softmax one vector for each word words 8 vectors 16 parameters 136 vocabulary.txt 8 words"  # 8 x (16 + 1)
    assert told in output
    assert told in run(model / "softmax.hdf5")  # by itself, too
    assert "weights all there" in output


def test_an_adaptive_one(model: Path) -> None:
    plain = model_of()
    LanguageModel(plain.bilm, adaptive(OPTIONS.projection_dim), plain.vocabulary).save(model)
    assert "softmax adaptive, clusters from word 4 words 8 vectors 16" in run(model)


def test_one_of_another_width(model: Path) -> None:
    write_output_layer(model / "softmax.hdf5", adaptive(32), "float32")
    output = run(model, code=1)
    assert "32" in output
    assert "16" in output
    assert "softmax.hdf5" in output


def test_other_words(model: Path) -> None:
    with (model / "vocabulary.txt").open("a", encoding="utf8") as file:
        file.write("newt\n")
    assert "9 words" in run(model, code=1)
    (model / "vocabulary.txt").unlink()
    assert "can't be used without its words" in run(model)


def test_damage(model: Path) -> None:
    path = model / "softmax.hdf5"
    path.write_bytes(path.read_bytes()[:-100])
    assert "cut short" in run(model, code=1)


def test_en_mini_with_and_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bilm = embed(monkeypatch, tmp_path / "bilms" / "en_mini")
    assert "softmax" not in run("en_mini")
    name = f"softmax_package_{tmp_path.name.replace('-', '_')}"
    package = make_package(monkeypatch, tmp_path / "site" / name, bilm / "weights.hdf5")
    assert "softmax one vector for each word" in run("en_mini")
    (package / "bilm.sha256").write_text("0" * 64, encoding="utf8")
    assert "en_mini" in run("en_mini", code=1)
