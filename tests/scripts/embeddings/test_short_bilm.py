"""A biLM of a short training: official files, and nothing half-written."""

from pathlib import Path

import pytest

from scripts.embeddings.short_bilm import train
from spacy_elmo.errors import CommandError
from spacy_elmo.formats import read_options, read_weights

ROOT = Path(__file__).parents[3]
SMALL = "--bilm.lstm.dim 16 --bilm.lstm.projection_dim 8 --bilm.char_cnn.filters [[1,4],[2,8]] --vocabulary.size 20"
RUN = "--training.streams 4 --training.steps 5 --training.softmax.kind full --training.schedule.warmup_steps 2"


@pytest.mark.slow
def test_short_bilm(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("it rains in the valley\nthe old town sleeps until noon\n" * 100, encoding="utf-8")
    tokens = train(text, tmp_path / "made", 200, (*SMALL.split(), *RUN.split()), ROOT / "configs" / "pretrain.cfg")
    assert tokens == 200
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "metrics.jsonl",
        "options.json",
        "weights.hdf5",
    ]
    options = read_options(tmp_path / "made" / "options.json")
    assert read_weights(tmp_path / "made" / "weights.hdf5", options)
    assert options.width == 16


@pytest.mark.slow
def test_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "old").touch()
    with pytest.raises(CommandError, match="pretraining failed"):
        train(tmp_path / "none.txt", tmp_path / "made", 200, config=ROOT / "configs" / "pretrain.cfg")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["old"]
