"""Static vectors: what is missing is named. floret itself is only needed for the experiments."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
import static_vectors

from spacy_elmo.errors import CommandError


def test_without_floret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "floret", None)
    with pytest.raises(CommandError, match="pip install floret"):
        static_vectors.train(tmp_path / "text.txt", tmp_path / "vectors", 10, 1, 1)


def test_without_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "floret", ModuleType("floret"))
    with pytest.raises(CommandError, match=r"text\.txt: can't be read"):
        static_vectors.train(tmp_path / "text.txt", tmp_path / "vectors", 10, 1, 1)
    assert not (tmp_path / "vectors").exists()
