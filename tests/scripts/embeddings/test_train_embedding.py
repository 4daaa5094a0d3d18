"""The record of an embedding's training is written after it, and only then."""

import json
from pathlib import Path

import pytest

from scripts.embeddings import train_embedding
from spacy_elmo.errors import CommandError


def test_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train_embedding, "EMBEDDINGS", {"floret": lambda text: len(text.name)})
    (tmp_path / "text.txt").touch()
    train_embedding.main("floret", Path("text.txt"))
    facts = json.loads((tmp_path / "results" / "embeddings" / "floret.json").read_text(encoding="utf-8"))
    assert facts["words"] == 8
    assert facts["minutes"] == 0.0


@pytest.mark.parametrize(
    ("embedding", "message"),
    [("glove", "Expected one of floret"), *((name, "no file.*--vars.text") for name in train_embedding.EMBEDDINGS)],
)
def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedding: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (tmp_path / "text.txt", Path("")):
        with pytest.raises(CommandError, match=message):
            train_embedding.main(embedding, text)
    assert not any(tmp_path.iterdir())


def test_a_failure_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: Path) -> int:
        raise CommandError("no")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train_embedding, "EMBEDDINGS", {"floret": fail})
    (tmp_path / "text.txt").touch()
    record = tmp_path / "results" / "embeddings" / "floret.json"
    record.parent.mkdir(parents=True)
    record.write_text("earlier")
    with pytest.raises(CommandError, match="no"):
        train_embedding.main("floret", Path("text.txt"))
    assert record.read_text() == "earlier"
