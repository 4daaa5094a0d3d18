"""LayersFile: values, files of other programs, damage, full disks, read-only folders, threads and processes."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import random
import resource
import signal
import sqlite3
import struct
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.errors import CacheError, CacheWarning
from spacy_elmo.inference.cache import APPLICATION_ID, VERSION, LayersFile

NOBODY = 65534  # user id without rights


def random_layers(number: int, words: int = 20) -> dict[bytes, np.ndarray]:
    """Random layers by keys of 32 bytes. The same arguments give the same layers."""
    rng = np.random.default_rng(words)
    arrays = (rng.standard_normal((3, words, 256)).astype(np.float32) for _ in range(number))
    return {bytes([words]) + i.to_bytes(31, "big"): array for i, array in enumerate(arrays)}


def assert_same(got: dict[bytes, np.ndarray], expected: dict[bytes, np.ndarray]) -> None:
    assert got.keys() == expected.keys()
    for key, array in expected.items():
        assert got[key].dtype == np.float32
        assert got[key].shape == array.shape
        assert got[key].tobytes() == array.tobytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layers.sqlite"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)
        os.chmod(folder, 0o755)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Run the block without the rights of root, for whom no file is read-only."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def forked(target: Callable[[], None]) -> BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=target)
    with warnings.catch_warnings():
        # Newer versions of Python warn if a process with threads forks, which is what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


def joined(process: BaseProcess) -> None:
    process.join(60)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode == 0


def test_values_are_read_bit_for_bit(path: Path) -> None:
    items = random_layers(1200)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], np.float32)
    odd.view(np.int32)[0] |= 0x1234  # a NaN with a payload
    items |= {b"odd": odd.reshape(3, 1, 2), b"empty": np.zeros((3, 0, 256), np.float32)}
    LayersFile(path).write(items)
    file = LayersFile(path)
    assert_same(file.read([*items, b"unknown"]), items)
    assert file.read([]) == {}
    assert file.read([b"unknown"]) == {}
    assert not file.read([b"odd"])[b"odd"].flags.writeable


def test_views_and_other_types_are_written_as_float32(path: Path) -> None:
    base = np.arange(48, dtype=np.float64).reshape(4, 3, 4) / 3
    LayersFile(path).write({b"view": base.transpose(1, 0, 2)[:, ::2]})
    expected = np.stack([base[0], base[2]], axis=1).astype(np.float32)
    assert_same(LayersFile(path).read([b"view"]), {b"view": expected})


def test_contents_of_the_file(path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    LayersFile(path).write({b"key": array})
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"eLMo", "big"),)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        ((key, shape, _, data),) = connection.execute("SELECT key, shape, crc, data FROM layers").fetchall()
    assert key == b"key"
    assert shape == b"".join(size.to_bytes(8, "little") for size in (3, 1, 2))
    assert data == array.astype("<f4").tobytes()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_arrays_too_large_for_sqlite_are_skipped(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.inference.cache._MAX_BYTES", 3 * 20 * 256 * 4)
    LayersFile(path).write(random_layers(2) | random_layers(2, 21))
    assert_same(LayersFile(path).read([*random_layers(2), *random_layers(2, 21)]), random_layers(2))


def test_the_first_writer_wins(path: Path) -> None:
    first, second = (np.full((3, 1, 2), value, np.float32) for value in (1, 2))
    LayersFile(path).write({b"a": first})
    LayersFile(path).write({b"a": second, b"b": second})
    assert_same(LayersFile(path).read([b"a", b"b"]), {b"a": first, b"b": second})


def test_a_bad_array_keeps_all_others_from_being_written(path: Path) -> None:
    file = LayersFile(path)
    with pytest.raises(Exception, match="expected 3 items"):
        file.write({b"a": np.zeros((3, 1, 2), np.float32), b"b": np.zeros(4, np.float32)})
    assert file.read([b"a", b"b"]) == {}


@pytest.mark.parametrize("address", ["https://example.org/layers", "s3://bucket/layers"])
def test_an_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(CacheError, match="an address on the network"):
        LayersFile(address)


def test_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"a folder or a special file. Set cache_file"):
        LayersFile(tmp_path)


def test_a_missing_folder_is_named_at_the_first_use(tmp_path: Path) -> None:
    file = LayersFile(tmp_path / "no" / "layers")
    for use in (lambda: file.read([b"a"]), lambda: file.write(random_layers(1))):
        with pytest.raises(CacheError, match=f"the folder {tmp_path / 'no'} does not exist.*cache_file"):
            use()
    assert not (tmp_path / "no").exists()


def test_an_empty_file_is_used(path: Path) -> None:
    path.touch()
    LayersFile(path).write(random_layers(2))
    assert_same(LayersFile(path).read(list(random_layers(2))), random_layers(2))


@pytest.mark.parametrize("content", [b"x", b"text\n" * 1000, b"SQLite format 3\0", bytes(4096)])
def test_another_kind_of_file_is_refused_and_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    file = LayersFile(path)
    for use in (lambda: file.read([b"a"]), lambda: file.write(random_layers(1))):
        with pytest.raises(CacheError, match=r"no SQLite database.*Set cache_file to another file, or delete"):
            use()
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("application", [0, 7])
def test_another_database_is_refused_and_untouched(path: Path, application: int) -> None:
    """Also a database that is in use, with a part of its data in the journal."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {application}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE layers (key BLOB PRIMARY KEY, mine TEXT)")
        connection.execute("INSERT INTO layers VALUES (?, 'mine')", [b"a"])
        connection.commit()
        before = {file: file.read_bytes() for file in path.parent.iterdir()}
        assert len(before) == 3
        for use in (lambda: LayersFile(path).read([b"a"]), lambda: LayersFile(path).write(random_layers(1))):
            with pytest.raises(CacheError, match=f"the application_id {application}, not .*delete"):
                use()
        assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_another_version_is_refused(path: Path) -> None:
    LayersFile(path).write(random_layers(1))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    before = path.read_bytes()
    with pytest.raises(CacheError, match=r"version 2 of their format. Expected version 1: delete the file"):
        LayersFile(path).read([b"a"])
    assert path.read_bytes() == before


@pytest.mark.parametrize("words", [1, 20])  # a row that fits in SQLite's page, and a longer one
def test_a_damaged_row_is_missing_and_replaced(path: Path, words: int) -> None:
    items = random_layers(5, words)
    file = LayersFile(path)
    file.write(items)
    victim = list(items)[2]
    content = bytearray(path.read_bytes())
    at = content.index(items[victim].tobytes()[-64:-32])
    content[at + 5] ^= 0x10
    path.write_bytes(content)
    others = {key: array for key, array in items.items() if key != victim}
    assert_same(file.read(list(items)), others)
    file.write({victim: items[victim]})
    assert_same(LayersFile(path).read(list(items)), items)


@pytest.mark.parametrize(
    "change",
    [
        "shape = x'0300000000000000'",
        "shape = substr(shape, 1, 16) || x'0200000000000000'",
        "shape = 3",
        "data = substr(data, 5)",
        "data = NULL",
        "data = CAST(substr(data, 5) AS TEXT)",
        "crc = crc + 1",
        "crc = NULL",
        "key = x'01'",
    ],
)
def test_a_changed_row_counts_as_missing(path: Path, change: str) -> None:
    LayersFile(path).write(random_layers(3))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE layers SET {change} WHERE key = ?", [next(iter(random_layers(3)))])
        connection.commit()
    assert_same(LayersFile(path).read([*random_layers(3), b"\x01"]), dict(list(random_layers(3).items())[1:]))


def test_no_damage_gives_wrong_values(path: Path) -> None:
    """If any bytes are damaged, each row is intact or missing, or the file is refused."""
    items = random_layers(40, 1) | random_layers(10, 20)
    LayersFile(path).write(items)
    intact = path.read_bytes()
    rng = random.Random(0)
    refused = 0
    for _ in range(150):
        content = bytearray(intact)
        for _ in range(rng.choice([1, 1, 50])):
            # half of the damage is in the first pages, which describe the table
            content[rng.randrange(rng.choice([len(intact), 12288]))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        for _ in range(2):
            file = LayersFile(path)
            try:
                got = file.read(list(items))
            except CacheError:
                refused += 1
                break
            assert_same(got, {key: items[key] for key in got})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CacheWarning)
                file.write({key: array for key, array in items.items() if key not in got})
    assert 0 < refused < 150


@pytest.mark.parametrize("share", [0.0002, 0.02, 0.5, 0.99])
def test_a_truncated_file_is_refused(path: Path, share: float) -> None:
    LayersFile(path).write(random_layers(10))
    os.truncate(path, int(share * path.stat().st_size))
    with pytest.raises(CacheError, match=r"[Dd]elete"):
        LayersFile(path).read(list(random_layers(10)))


def test_a_deleted_file_is_created_again(path: Path) -> None:
    file = LayersFile(path)
    file.write(random_layers(2))
    path.unlink()
    assert file.read(list(random_layers(2))) == {}
    file.write(random_layers(2))
    assert_same(file.read(list(random_layers(2))), random_layers(2))


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o755), (0o444, 0o555), (0o644, 0o555)])
def test_read_only_files_and_folders_are_read(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    items, path = random_layers(3), open_folder / "layers"
    LayersFile(path).write(items)
    before = path.read_bytes()
    os.chmod(path, file_mode)
    os.chmod(open_folder, folder_mode)
    with unprivileged():
        file = LayersFile(path)
        assert_same(file.read(list(items)), items)
        with pytest.warns(CacheWarning, match="no more layers are written there.*cache_file"):
            file.write(random_layers(4, 2))
        file.write(random_layers(4, 2))  # no second warning: warnings are errors in tests
        assert_same(file.read([*items, *random_layers(4, 2)]), items)
    assert path.read_bytes() == before
    assert [file.name for file in open_folder.iterdir()] == [path.name]


def test_a_file_that_can_not_be_read_or_made(open_folder: Path) -> None:
    path = open_folder / "layers"
    LayersFile(path).write(random_layers(1))
    os.chmod(path, 0)
    with unprivileged(), pytest.raises(CacheError, match="Permission denied"):
        LayersFile(path).read([b"a"])
    os.chmod(open_folder, 0o555)
    with unprivileged(), pytest.raises(CacheError, match=r"set cache_file|Set cache_file"):
        LayersFile(open_folder / "other").read([b"a"])


def test_a_full_disk_stops_only_writing(path: Path) -> None:
    first, second = random_layers(5), random_layers(60, 30)
    file = LayersFile(path)
    file.write(first)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.warns(CacheWarning, match="no more layers are written there"):
            file.write(second)
        assert_same(file.read([*first, *second]), first)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.write(second)  # there is room again, but this object writes no more
    assert_same(LayersFile(path).read([*first, *second]), first)
    LayersFile(path).write(second)
    assert_same(LayersFile(path).read([*first, *second]), first | second)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_file_that_another_process_has_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.inference.cache._TIMEOUT", 0.05)
    file = LayersFile(path)
    file.write(random_layers(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CacheError, match="locked"):
            file.read([b"a"])
        with pytest.warns(CacheWarning, match="locked"):
            file.write(random_layers(2, 2))


@pytest.mark.slow
def test_a_process_killed_while_it_writes(path: Path) -> None:
    """Also while it creates the file. The file opens afterwards, and each row is intact."""
    items = random_layers(200, 30)

    def write() -> None:
        for start in range(0, 200, 10):
            LayersFile(path).write(dict(list(items.items())[start : start + 10]))

    partly = 0
    for size in np.linspace(0, 17e6, 25):  # of 18.6 MB
        path.unlink(missing_ok=True)
        process = forked(write)
        while process.is_alive() and (not path.exists() or path.stat().st_size < size):
            time.sleep(1e-4)
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
        got = LayersFile(path).read(list(items))
        assert len(got) % 10 == 0  # all arrays of a call, or none
        assert_same(got, {key: items[key] for key in got})
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        partly += 0 < len(got) < 200
    assert partly
    LayersFile(path).write(items)
    assert_same(LayersFile(path).read(list(items)), items)


def test_processes_that_write_at_the_same_time(path: Path) -> None:
    """Each process writes the same keys with other values, and its own keys. None of them finds a file at first."""
    barrier = multiprocessing.get_context("fork").Barrier(3)

    def write(number: int) -> None:
        file = LayersFile(path)
        barrier.wait(60)
        for i in range(30):
            value = np.full((3, 5, 64), number, np.float32)
            file.write({b"same%d" % i: value, b"own%d %d" % (number, i): value})
            assert file.read([b"same%d" % i])[b"same%d" % i][0, 0, 0] in (0, 1, 2)

    for process in [forked(lambda number=number: write(number)) for number in range(3)]:
        joined(process)
    own = {b"own%d %d" % (k, i): np.full((3, 5, 64), k, np.float32) for k in range(3) for i in range(30)}
    assert_same(LayersFile(path).read(list(own)), own)
    same = LayersFile(path).read([b"same%d" % i for i in range(30)])
    assert len(same) == 30
    for array in same.values():
        assert array[0, 0, 0] in (0, 1, 2)
        assert (array == array[0, 0, 0]).all()


def test_a_process_that_writes_while_another_one_reads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries to just after the size of the file was taken, which limits the bytes of all rows. It has to wait."""
    first, later = random_layers(2, 21), random_layers(20)
    LayersFile(path).write(first)
    LayersFile(path.with_name("later")).write(later)
    getsize, tries = os.path.getsize, []

    def getsize_and_write(name: str) -> int:
        size = getsize(name)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("ATTACH ? AS later", [str(path.with_name("later"))])
            try:
                other.execute("INSERT INTO layers SELECT * FROM later.layers")
            except sqlite3.OperationalError as error:
                tries.append(str(error))
        return size

    with monkeypatch.context() as patch:
        patch.setattr(os.path, "getsize", getsize_and_write)
        assert_same(LayersFile(path).read([*first, *later]), first)
    assert tries == ["database is locked"]
    LayersFile(path).write(later)
    assert_same(LayersFile(path).read([*first, *later]), first | later)


@pytest.mark.slow
def test_forks_while_threads_read_and_write(path: Path) -> None:
    file, items = LayersFile(path), random_layers(100)
    file.write(items)
    stop = threading.Event()

    def busy(number: int) -> int:
        count = 0
        while not stop.is_set():
            file.write({b"%d %d" % (number, count): np.zeros((3, 2, 4), np.float32)})
            assert len(file.read(list(items)[:20])) == 20
            count += 1
        return count

    def child(number: int) -> None:
        assert_same(file.read(list(items)), items)
        file.write({b"child %d" % number: np.full((3, 2, 4), number, np.float32)})

    with ThreadPoolExecutor(2) as pool:
        counts = [pool.submit(busy, number) for number in range(2)]
        try:
            for process in [forked(lambda number=number: child(number)) for number in range(8)]:
                joined(process)
        finally:
            stop.set()
        for number, count in enumerate(counts):
            keys = [b"%d %d" % (number, i) for i in range(count.result())]
            assert keys
            assert len(file.read(keys)) == len(keys)
    children = {b"child %d" % number: np.full((3, 2, 4), number, np.float32) for number in range(8)}
    assert_same(file.read(list(children)), children)


def test_pickling_and_copying(path: Path) -> None:
    file = LayersFile(path)
    file.write(random_layers(2))
    for other in (pickle.loads(pickle.dumps(file)), copy.deepcopy(file)):
        assert_same(other.read(list(random_layers(2))), random_layers(2))
        other.write(random_layers(3, 2))
    assert_same(file.read(list(random_layers(3, 2))), random_layers(3, 2))


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "a b#%41?.é", "-"])
def test_file_names_with_a_meaning_in_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    file = LayersFile(name)
    monkeypatch.chdir("/")
    file.write(random_layers(1))
    assert_same(LayersFile(tmp_path / name).read(list(random_layers(1))), random_layers(1))
    assert [file.name for file in tmp_path.iterdir()] == [name]


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


OLD, NEW, LATER = (np.full((3, 1, 2), value, np.float32) for value in (1, 2, 3))


@pytest.fixture
def path_layers_file_repair(tmp_path: Path) -> Path:
    LayersFile(tmp_path / "layers.sqlite").write({b"a": OLD, b"b": OLD})
    return tmp_path / "layers.sqlite"


def damage(path_layers_file_repair: Path) -> None:
    """Let the checksum of the row "a" be wrong."""
    with closing(sqlite3.connect(path_layers_file_repair)) as connection:
        connection.execute("UPDATE layers SET crc = crc + 1 WHERE key = ?", [b"a"])
        connection.commit()


def stored(path_layers_file_repair: Path) -> dict[bytes, bytes]:
    with closing(sqlite3.connect(path_layers_file_repair)) as connection:
        return dict(connection.execute("SELECT key, data FROM layers"))


def test_a_row_that_this_object_replaced_is_not_replaced_again(path_layers_file_repair: Path) -> None:
    damage(path_layers_file_repair)
    file = LayersFile(path_layers_file_repair)
    assert file.read([b"a", b"b"]).keys() == {b"b"}
    file.write({b"a": NEW, b"b": NEW})
    assert stored(path_layers_file_repair) == {b"a": NEW.tobytes(), b"b": OLD.tobytes()}
    file.write({b"a": LATER, b"b": LATER})
    assert stored(path_layers_file_repair) == {b"a": NEW.tobytes(), b"b": OLD.tobytes()}


def test_a_row_that_another_object_replaced_is_not_replaced_again(path_layers_file_repair: Path) -> None:
    damage(path_layers_file_repair)
    file, other = LayersFile(path_layers_file_repair), LayersFile(path_layers_file_repair)
    for each in (file, other):
        assert each.read([b"a"]) == {}
    other.write({b"a": NEW})
    assert file.read([b"a"])[b"a"].tobytes() == NEW.tobytes()
    file.write({b"a": LATER})
    assert stored(path_layers_file_repair) == {b"a": NEW.tobytes(), b"b": OLD.tobytes()}


def test_a_damaged_row_stays_until_it_is_written(path_layers_file_repair: Path) -> None:
    damage(path_layers_file_repair)
    file = LayersFile(path_layers_file_repair)
    assert file.read([b"a"]) == {}
    file.write({b"c": NEW})
    assert stored(path_layers_file_repair) == {b"a": OLD.tobytes(), b"b": OLD.tobytes(), b"c": NEW.tobytes()}
    file.write({b"a": NEW})
    assert stored(path_layers_file_repair)[b"a"] == NEW.tobytes()


def test_a_file_that_another_process_is_making_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was missing when its header was to be read. Now it has data, no version yet, and a lock."""
    monkeypatch.setattr("spacy_elmo.inference.cache._TIMEOUT", 0.05)
    monkeypatch.setattr(LayersFile, "_check_header", lambda self: None)
    path_layers_file_repair = tmp_path / "layers.sqlite"
    with closing(sqlite3.connect(path_layers_file_repair, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN IMMEDIATE")
        before = path_layers_file_repair.read_bytes()
        assert before
        with pytest.raises(CacheError, match="locked"):
            LayersFile(path_layers_file_repair).read([b"a"])
        assert path_layers_file_repair.read_bytes() == before


def test_what_sqlite_is_told_about_safety(path_layers_file_repair: Path) -> None:
    """In SQLite's numbers, synchronous 1 is NORMAL: the disk is waited for at the critical moments."""
    with LayersFile(path_layers_file_repair)._open() as connection:
        for name, expected in (("synchronous", 1), ("trusted_schema", 0), ("cell_size_check", 1)):
            assert connection.execute(f"PRAGMA {name}").fetchone() == (expected,), name
        assert connection.execute("PRAGMA journal_mode").fetchone() == (b"delete",)
