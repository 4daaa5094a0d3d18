"""The commands, through spaCy's own app."""

from pathlib import Path

import numpy as np
import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo.cli  # noqa: F401  # registers the commands, as spaCy does through the entry point
from spacy_elmo.formats import read_vectors
from spacy_elmo.pretraining.evaluating import read_metrics

pytestmark = pytest.mark.slow

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

[vocabulary]
size = 10

[training]
streams = 2
steps = 4
workers = 1
total_tokens = 80

[training.softmax]
negatives = 5

[evaluation]
every = 5
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


def test_pretrain(config: Path, tmp_path: Path) -> None:
    output = run("pretrain", str(config), str(tmp_path / "run"), "--training.total_tokens", "40")
    assert "lowest held-out perplexity" in output
    model = {"options.json", "weights.hdf5", "softmax.hdf5", "vocabulary.txt", "vocabulary.counts.npy", "README.md"}
    for name in ("model-best", "model-last"):
        assert {path.name for path in (tmp_path / "run" / name).iterdir()} == model
    assert len(read_metrics(tmp_path / "run" / "metrics.jsonl")) == 1
    assert (tmp_path / "run" / "curve.png").stat().st_size > 5_000
    assert "going on after step 5, 40 tokens" in run("pretrain", str(config), str(tmp_path / "run"))
    assert [row.tokens for row in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [40, 80]
    assert "perplexity" in run("evaluate", str(tmp_path / "run" / "model-best"), str(tmp_path / "heldout.txt"))


def test_demo(tmp_path: Path) -> None:
    output = run("demo", str(tmp_path / "out"))
    assert "bank 1.00 / 1.00" in output
    assert (tmp_path / "out" / "senses.png").stat().st_size > 20_000
    vectors = list(read_vectors(tmp_path / "out" / "vectors.hdf5"))
    assert len(vectors) == 40
    assert all(array.shape[0] == 3 and array.shape[2] == 256 for _, array in vectors)
    assert np.isfinite(vectors[0][1]).all()
