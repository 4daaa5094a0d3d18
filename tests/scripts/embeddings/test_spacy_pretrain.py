"""`spacy pretrain` as an alternative: its weights come into the network, and nothing half-written stays."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from spacy.training.initialize import init_tok2vec
from spacy.util import load_config, load_model_from_config

from scripts.embeddings.spacy_pretrain import pretrain, run_for
from scripts.runs.network_configs import pretraining_config
from spacy_elmo.errors import CommandError

NER = Path(__file__).parents[3] / "configs" / "ner.cfg"
SMALL = ("--components.tok2vec.model.embed.rows", "[50, 10, 25, 25]")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("It rains in the wide valley .\nThe old town sleeps until noon .\n" * 20, encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_network_begins_with_the_weights(text: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    words = pretrain(text, made, 5, (*SMALL, "--pretraining.max_epochs", "2"), NER)
    assert words == 2 * 20 * 14
    assert sorted(path.name for path in made.iterdir()) == ["log.jsonl", "model-last.bin"]
    config = pretraining_config(load_config(NER))
    config["components"]["tok2vec"]["model"]["embed"]["rows"] = [50, 10, 25, 25]
    nlp = load_model_from_config(config)
    model = nlp.get_pipe("tok2vec").model  # type: ignore[attr-defined]
    docs = [nlp.make_doc("It rains in the old town .")]
    model.initialize(X=docs)
    (before,) = model.predict(docs)
    init_tok2vec(nlp, config["pretraining"], {"init_tok2vec": str(made / "model-last.bin")})
    (after,) = model.predict(docs)
    assert np.isfinite(after).all()
    assert np.abs(after - before).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("ignored", [False, True])
def test_a_stopped_command_can_write_what_it_has(tmp_path: Path, ignored: bool) -> None:
    """Also if this process ignores interrupts, as one in the background does."""
    code = "try:\n import time\n time.sleep(60)\nfinally:\n open('written', 'w').close()"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
    try:
        run_for(2, [sys.executable, "-c", f"import os\nos.chdir({str(tmp_path)!r})\n{code}"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "written").exists()


def test_without_text(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.txt: can't be read"):
        pretrain(tmp_path / "none.txt", tmp_path / "made", 1)
    assert not (tmp_path / "made").exists()


@pytest.mark.slow
def test_nothing_half_written(text: Path, tmp_path: Path) -> None:
    """It is stopped before it has begun; what is there stays."""
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "old").touch()
    with pytest.raises(CommandError, match="pretraining failed"):
        pretrain(text, tmp_path / "made", 0, config=NER)
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["old"]
