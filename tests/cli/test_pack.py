"""`elmo pack MODEL OUT`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
import spacy
from embedded_case import model_of

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import SettingsError
from spacy_elmo.pretraining.language_model import LanguageModel

run = partial(commands.run, "elmo")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    model_of().save(tmp_path / "model")
    return tmp_path / "model"


def test_sizes_and_changes_are_printed(model: Path, tmp_path: Path) -> None:
    output = run("pack", model, tmp_path / "packed")
    totals = [0, 0]
    for path in sorted((tmp_path / "packed").iterdir()):
        before, after = ((folder / path.name).stat().st_size for folder in (model, tmp_path / "packed"))
        assert f"{path.name} {before:,} {after:,} {after / before:.0%}" in output
        totals = [totals[0] + before, totals[1] + after]
    assert f"together {totals[0]:,} {totals[1]:,}" in output
    assert "relative change of the weights: 0.00049 at most, 0.000" in output  # half of the last of 10 bits
    assert LanguageModel.load(tmp_path / "packed").words == model_of().words
    assert "was packed before" not in output
    output = run("pack", tmp_path / "packed", tmp_path / "b")
    assert "b: written" in output
    assert "was packed before: the copy has the same weights" in output
    assert "bytes before" not in output
    assert "has no softmax" not in output
    (tmp_path / "b" / "softmax.hdf5").unlink()
    assert "b has no softmax" in run("pack", tmp_path / "b", tmp_path / "c")


def test_the_bilm_of_a_saved_pipeline(model: Path, tmp_path: Path) -> None:
    """As it was tuned: the files give the pipeline's vectors."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(model)}})
    right = nlp("We sat")._.elmo_layers
    nlp.to_disk(tmp_path / "tuned")
    with pytest.raises(SettingsError, match=r"tuned: a saved pipeline\. .* python -m spacy elmo pack .*tuned OUT"):
        ElmoEmbedder(tmp_path / "tuned")
    assert "tuned has no softmax" in run("pack", tmp_path / "tuned", tmp_path / "out", "--mantissa-bits", "23")
    got = ElmoEmbedder(tmp_path / "out").embed_sentence(["We", "sat"])
    np.testing.assert_allclose(got, right, atol=1e-6)
    run("package", tmp_path / "tuned", tmp_path, "--name", "la")
    assert "--pipe is 'elmo', but" in run("pack", model, tmp_path / "b", "--pipe", "elmo", code=1)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("{tmp}/model", "{tmp}/missing/../model", "--force"), 1, "the folder to write are the same"),
        (("{tmp}/model", "{tmp}/run", "--force"), 1, "the folder of a pretraining run"),
        (("{tmp}/model", "{tmp}/notes", "--force"), 1, "holds README.md, but no options.json"),
        (("{tmp}/model", "{tmp}/packed", "--softmax", "int8"), 2, "float16"),
    ],
)
def test_refusals(model: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    output = run("pack", *(argument.format(tmp=tmp_path) for argument in arguments), code=code)
    assert message.replace(" ", "") in output.replace(" ", "")  # messages are wrapped anywhere
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
