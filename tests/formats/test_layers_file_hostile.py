"""Files of cached layers that are made to do harm: views, triggers, other tables, rows that fill the memory."""

from __future__ import annotations

import sqlite3
import struct
import time
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.errors import CacheError, CacheWarning
from spacy_elmo.inference.cache import APPLICATION_ID, VERSION, LayersFile

KEYS = [bytes([i]) * 32 for i in range(40)]
TABLE = "CREATE TABLE layers (key BLOB PRIMARY KEY, shape BLOB, crc INTEGER, data BLOB)"
NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) SELECT"
ENDLESS = f"CREATE VIEW layers AS {NUMBERS.format('')} x AS key, x AS shape, x AS crc, x AS data FROM n"
LARGE = (
    f"CREATE VIEW layers AS {NUMBERS.format(' WHERE x < 40')} "
    "zeroblob(32) AS key, x AS shape, x AS crc, zeroblob(500000000) AS data FROM n"
)
TRIGGER = (
    f"CREATE TRIGGER more AFTER INSERT ON layers BEGIN INSERT INTO layers {NUMBERS.format('')} x, x, x, x FROM n; END"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layers.sqlite"


def make(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statements", "got"),
    [
        ([ENDLESS], "'layers'"),
        ([LARGE], "'layers'"),
        ([TABLE, TRIGGER], "'more'"),
        ([TABLE, "CREATE TABLE other (x)"], "'other'"),
        ([TABLE, "CREATE INDEX other ON layers (hex(data))"], "'other'"),
        ([TABLE.replace("data BLOB", "data BLOB AS (zeroblob(500000000))")], "'layers'"),
        ([TABLE.replace("data BLOB", "data BLOB DEFAULT (zeroblob(500000000))")], "'layers'"),
        ([TABLE.replace("BLOB PRIMARY KEY", "TEXT COLLATE NOCASE PRIMARY KEY")], "'layers'"),
        ([], "nothing"),
    ],
    ids=["endless", "large", "trigger", "table", "index", "generated", "default", "collation", "nothing"],
)
def test_any_other_schema_is_refused(path: Path, statements: list[str], got: str) -> None:
    make(path, *statements)
    before, started = path.read_bytes(), time.monotonic()
    for use in (lambda file: file.read(KEYS), lambda file: file.write({KEYS[0]: np.zeros((3, 1, 2), np.float32)})):
        with pytest.raises(CacheError, match=f"{got}.*not with the table of cached layers alone.*Set cache_file"):
            use(LayersFile(path))
    assert path.read_bytes() == before
    assert time.monotonic() - started < 10


def test_rows_that_share_their_bytes(path: Path) -> None:
    """Each row has the right checksum, and its values go on in the same pages: 1.3 MB in a file of 0.3 MB."""
    shape, data = struct.pack("<3q", 2, 2**7, 2**8), bytes(2**18)
    make(path, TABLE)
    with closing(sqlite3.connect(path)) as connection:
        for key in KEYS[:5]:
            connection.execute("INSERT INTO layers VALUES (?, ?, ?, ?)", (key, shape, 0, bytes(420)))
        for key in KEYS[:5]:  # so that the pages of the first row come first
            crc = zlib.crc32(data, zlib.crc32(key + shape))
            connection.execute("UPDATE layers SET crc = ?, data = ? WHERE key = ?", (crc, data, key))
        connection.commit()
    size = share_overflow_pages(path)
    assert size < 0.3e6
    with closing(sqlite3.connect(path)) as connection:  # SQLite itself reads all of it
        assert connection.execute("SELECT data FROM layers").fetchall() == [(data,)] * 5
    assert len(LayersFile(path).read(KEYS[:1])) == 1
    with pytest.raises(CacheError, match="its rows have more bytes than the file"):
        LayersFile(path).read(KEYS)


def share_overflow_pages(path: Path) -> int:
    """Let all rows of the table go on in the pages of the first one, and cut the others' pages off.

    The table is a single page, the second one (see SQLite's description of its file format). Returns the file's size.
    """
    content = bytearray(path.read_bytes())
    page = int.from_bytes(content[16:18], "big")
    assert content[page] == 13  # a leaf of a table
    n_cells = int.from_bytes(content[page + 3 : page + 5], "big")
    assert n_cells == 5
    starts = [int.from_bytes(content[page + 8 + 2 * i :][:2], "big") for i in range(n_cells)]
    ends = []
    for start in starts:
        at, (payload, width) = page + start, read_varint(content, page + start)
        least = (page - 12) * 32 // 255 - 23
        local = least + (payload - least) % (page - 4)
        if local > page - 35:
            local = least
        ends.append(at + width + read_varint(content, at + width)[1] + local)
    first = bytes(content[ends[0] : ends[0] + 4])
    for end in ends:
        content[end : end + 4] = first
    last = number = int.from_bytes(first, "big")
    while number:
        last = max(last, number)
        number = int.from_bytes(content[(number - 1) * page :][:4], "big")
    content[28:32] = last.to_bytes(4, "big")  # the number of pages
    path.write_bytes(content[: last * page])
    return last * page


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """An integer in SQLite's variable length, seven bits a byte, and its number of bytes."""
    value = 0
    for width in range(1, 9):
        byte = content[at + width - 1]
        value = value << 7 | byte & 127
        if byte < 128:
            return value, width
    raise AssertionError


def test_an_array_of_more_bytes_than_can_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = {KEYS[0]: np.zeros((3, 100, 20), np.float32), KEYS[1]: np.zeros((3, 1, 20), np.float32)}
    LayersFile(path).write(items)
    monkeypatch.setattr("spacy_elmo.inference.cache._MAX_BYTES", 10_000)
    assert list(LayersFile(path).read(KEYS)) == [KEYS[1]]


@pytest.mark.parametrize("sizes", [(-1, 2, 3), (-3, -1, 2), (3, 2**62, 4), (2**63 - 1, 1, 1), (0, 0, 0), (3, 1, 3)])
def test_shapes_that_do_not_fit_the_data(path: Path, sizes: tuple[int, ...]) -> None:
    """The checksum is right."""
    shape, data = struct.pack("<3q", *sizes), bytes(24)
    make(path, TABLE)
    with closing(sqlite3.connect(path)) as connection:
        row = (KEYS[0], shape, zlib.crc32(data, zlib.crc32(KEYS[0] + shape)), data)
        connection.execute("INSERT INTO layers VALUES (?, ?, ?, ?)", row)
        connection.commit()
    file = LayersFile(path)
    assert file.read(KEYS) == {}
    right = np.ones((3, 1, 2), np.float32)
    file.write({KEYS[0]: right})
    assert file.read(KEYS)[KEYS[0]].tobytes() == right.tobytes()


def test_a_huge_shape_without_values(path: Path) -> None:
    """The checksum is right, and the shape has 0 values."""
    make(path, TABLE)
    shape = struct.pack("<3q", 0, 2**62, 2**62)
    with closing(sqlite3.connect(path)) as connection:
        row = (KEYS[0], shape, zlib.crc32(KEYS[0] + shape), b"")
        connection.execute("INSERT INTO layers VALUES (?, ?, ?, ?)", row)
        connection.commit()
    assert LayersFile(path).read(KEYS) == {}


def test_messages_that_are_not_utf8(path: Path) -> None:
    """SQLite quotes the name of a table that it can't parse."""
    make(path, TABLE)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"layers", b"\xff\xfe\xfd\xfc\xfb\xfa").replace(b"CREATE", b"DELETE"))
    with pytest.raises(CacheError, match="can't be opened or read"):
        LayersFile(path).read(KEYS)
    with pytest.warns(CacheWarning, match="no more layers are written"):
        LayersFile(path).write({KEYS[0]: np.zeros((3, 1, 2), np.float32)})
