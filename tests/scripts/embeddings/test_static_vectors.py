"""Static vectors: what is missing is named. floret itself is only needed for the experiments."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from scripts.embeddings import static_vectors
from spacy_elmo.errors import CommandError


def test_without_floret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "floret", None)
    with pytest.raises(CommandError, match="pip install floret"):
        static_vectors.train(tmp_path / "text.txt", tmp_path / "vectors", 10, 1)


def test_without_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "floret", ModuleType("floret"))
    with pytest.raises(CommandError, match=r"text\.txt: can't be read"):
        static_vectors.train(tmp_path / "text.txt", tmp_path / "vectors", 10, 1)
    assert not (tmp_path / "vectors").exists()


def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """spaCy refuses what a stand-in for floret writes; the vectors that are there stay."""

    class Trained:
        def save_floret_vectors(self, path: str) -> None:
            Path(path).write_text("no vectors\n", encoding="utf-8")

    floret = ModuleType("floret")
    floret.train_unsupervised = lambda text, **settings: Trained()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "floret", floret)
    (tmp_path / "text.txt").write_text("a b\n", encoding="utf-8")
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "old").touch()
    with pytest.raises(CommandError, match="spaCy did not take the vectors"):
        static_vectors.train(tmp_path / "text.txt", tmp_path / "vectors", 10, 1)
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == ["old"]
