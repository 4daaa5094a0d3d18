"""The commands, through spaCy's own app."""

from pathlib import Path

import numpy as np
import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.formats import read_vectors

TEXT = "the cat sat on the mat\na dog sat on the cat\nthe dog and the cat\n" * 12
CONFIG = """
[paths]
train = "{folder}/train.txt"
heldout = "{folder}/heldout.txt"

[bilm]

[bilm.lstm]
dim = 6
projection_dim = 4
n_layers = 1
cell_clip = null
proj_clip = 3
use_skip_connections = true

[bilm.char_cnn]
embedding = {{"dim": 3}}
filters = [[1, 4], [2, 4]]
n_highway = 1
n_characters = 261
max_characters_per_token = 20
activation = "relu"

[training]
n_words = 10
streams = 2
steps = 4
negatives = 5
total_tokens = 80
workers = 1
evaluate_every = 5
checkpoint_every = 5
"""


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["elmo", *arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name in ("train.txt", "heldout.txt"):
        (tmp_path / name).write_text(TEXT, encoding="utf8")
    path = tmp_path / "pretrain.cfg"
    path.write_text(CONFIG.format(folder=tmp_path), encoding="utf8")
    return path


def test_pretrain_and_evaluate(config: Path, tmp_path: Path) -> None:
    output = run("pretrain", str(config), str(tmp_path / "run"))
    assert "held-out perplexity" in output
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        "checkpoint.h5",
        "corpus",
        "metrics.jsonl",
        "options.json",
        "run.json",
        "vocabulary.txt",
        "weights.hdf5",
    }
    output = run("evaluate", str(tmp_path / "run"))
    assert "36 sentences, 204 tokens, vocabulary 10" in output
    for row in ("unigram model", "biLM, zero state", "biLM, carried state"):
        assert row in output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[training]", "[trainin]", "the section [training] is missing"),
        ("train.txt", "gone.txt", "which is no file"),
        ("streams = 2", "streems = 2", "unknown settings in [training]: streems"),
        ("streams = 2", "streams = 0", "training.streams is 0. Expected 1 or more"),
        ("dim = 6", "dim = -6", "lstm.dim is -6"),
    ],
)
def test_pretrain_refuses(config: Path, tmp_path: Path, old: str, new: str, message: str) -> None:
    config.write_text(config.read_text(encoding="utf8").replace(old, new, 1), encoding="utf8")
    assert message in run("pretrain", str(config), str(tmp_path / "run"), code=1)
    assert not (tmp_path / "run").exists()


def test_evaluate_refuses_a_folder_without_a_run(tmp_path: Path) -> None:
    assert "Expected the folder that `spacy elmo pretrain` made" in run("evaluate", str(tmp_path), code=1)


def test_demo(tmp_path: Path) -> None:
    output = run("demo", str(tmp_path / "out"))
    assert "bank 1.00 / 1.00" in output
    assert (tmp_path / "out" / "senses.png").stat().st_size > 20_000
    vectors = list(read_vectors(tmp_path / "out" / "vectors.hdf5"))
    assert len(vectors) == 40
    assert all(array.shape[0] == 3 and array.shape[2] == 256 for _, array in vectors)
    assert np.isfinite(vectors[0][1]).all()
