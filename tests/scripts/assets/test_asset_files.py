"""Prepared files take the place of originals if all of them are there with their MD5."""

import hashlib
from pathlib import Path

import pytest

from scripts.assets import asset_files
from scripts.assets.asset_files import Prepared, prepared_or_given

TEXTS = {"assets/x/p.tsv": b"one\n", "assets/x/q.tsv": b"two\n"}
TABLE = (Prepared({path: hashlib.md5(text).hexdigest() for path, text in TEXTS.items()}, ("assets/x/a", "assets/x/b")),)
SOURCES = [Path("assets/y/c"), Path("assets/x/a"), Path("assets/x/b")]


def test_sources_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(asset_files, "PREPARED", TABLE)
    assert prepared_or_given(SOURCES) == SOURCES
    Path("assets/x").mkdir(parents=True)
    Path("assets/x/p.tsv").write_bytes(TEXTS["assets/x/p.tsv"])
    Path("assets/x/q.tsv").write_bytes(b"not what it was\n")
    assert prepared_or_given(SOURCES) == SOURCES
    Path("assets/x/q.tsv").write_bytes(TEXTS["assets/x/q.tsv"])
    assert prepared_or_given(SOURCES) == [Path("assets/y/c"), *map(Path, TEXTS)]
    assert prepared_or_given(SOURCES[1:2]) == [*map(Path, TEXTS)]
