"""Rows of cached layers that were damaged and are intact again, changed with sqlite3 itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.errors import CacheError
from spacy_elmo.inference.cache import LayersFile

OLD, NEW, LATER = (np.full((3, 1, 2), value, np.float32) for value in (1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    LayersFile(tmp_path / "layers.sqlite").write({b"a": OLD, b"b": OLD})
    return tmp_path / "layers.sqlite"


def damage(path: Path) -> None:
    """Let the checksum of the row "a" be wrong."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE layers SET crc = crc + 1 WHERE key = ?", [b"a"])
        connection.commit()


def stored(path: Path) -> dict[bytes, bytes]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT key, data FROM layers"))


def test_a_row_that_this_object_replaced_is_not_replaced_again(path: Path) -> None:
    damage(path)
    file = LayersFile(path)
    assert file.read([b"a", b"b"]).keys() == {b"b"}
    file.write({b"a": NEW, b"b": NEW})
    assert stored(path) == {b"a": NEW.tobytes(), b"b": OLD.tobytes()}
    file.write({b"a": LATER, b"b": LATER})
    assert stored(path) == {b"a": NEW.tobytes(), b"b": OLD.tobytes()}


def test_a_row_that_another_object_replaced_is_not_replaced_again(path: Path) -> None:
    damage(path)
    file, other = LayersFile(path), LayersFile(path)
    for each in (file, other):
        assert each.read([b"a"]) == {}
    other.write({b"a": NEW})
    assert file.read([b"a"])[b"a"].tobytes() == NEW.tobytes()
    file.write({b"a": LATER})
    assert stored(path) == {b"a": NEW.tobytes(), b"b": OLD.tobytes()}


def test_a_damaged_row_stays_until_it_is_written(path: Path) -> None:
    damage(path)
    file = LayersFile(path)
    assert file.read([b"a"]) == {}
    file.write({b"c": NEW})
    assert stored(path) == {b"a": OLD.tobytes(), b"b": OLD.tobytes(), b"c": NEW.tobytes()}
    file.write({b"a": NEW})
    assert stored(path)[b"a"] == NEW.tobytes()


def test_a_file_that_another_process_is_making_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was missing when its header was to be read. Now it has data, no version yet, and a lock."""
    monkeypatch.setattr("spacy_elmo.inference.cache._TIMEOUT", 0.05)
    monkeypatch.setattr(LayersFile, "_check_header", lambda self: None)
    path = tmp_path / "layers.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN IMMEDIATE")
        before = path.read_bytes()
        assert before
        with pytest.raises(CacheError, match="locked"):
            LayersFile(path).read([b"a"])
        assert path.read_bytes() == before


def test_what_sqlite_is_told_about_safety(path: Path) -> None:
    """In SQLite's numbers, synchronous 1 is NORMAL: the disk is waited for at the critical moments."""
    with LayersFile(path)._open() as connection:
        for name, expected in (("synchronous", 1), ("trusted_schema", 0), ("cell_size_check", 1)):
            assert connection.execute(f"PRAGMA {name}").fetchone() == (expected,), name
        assert connection.execute("PRAGMA journal_mode").fetchone() == (b"delete",)
