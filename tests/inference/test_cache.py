"""The cache of layers in memory and in a file, and its keys."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import random
import resource
import signal
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.errors import CacheError, CacheWarning
from spacy_elmo.inference.cache import LayerCache, LayersFile, row_key

KEYS = [b"%d" % i for i in range(10)]
ARRAYS = [np.random.default_rng(i).standard_normal((3, 4, 8)).astype(np.float32) for i in range(10)]
SIZE = 3 * 4 * 8 * 4


def numbers(found: list[np.ndarray | None]) -> list[int | None]:
    """Which of ARRAYS, bit for bit."""
    known = {array.tobytes(): i for i, array in enumerate(ARRAYS)}
    assert all(array is None or (array.shape == (3, 4, 8) and array.dtype == np.float32) for array in found)
    return [None if array is None else known[array.tobytes()] for array in found]


def test_memory_alone() -> None:
    cache = LayerCache(100 * SIZE)
    assert cache.get(KEYS[:2]) == [None, None]
    cache.put(KEYS[:3], ARRAYS[:3])
    assert numbers(cache.get([KEYS[2], b"unknown", KEYS[0], KEYS[2]])) == [2, None, 0, 2]
    assert (len(cache), cache.nbytes) == (3, 3 * SIZE)
    cache.put(KEYS[:3], ARRAYS[5:8])
    assert numbers(cache.get(KEYS[:3])) == [0, 1, 2]
    assert (len(cache), cache.nbytes) == (3, 3 * SIZE)
    cache.close()
    assert cache.get(KEYS[:3]) == [None] * 3
    assert (len(cache), cache.nbytes) == (0, 0)
    assert cache.get([]) == []


def test_what_is_kept_can_not_be_changed() -> None:
    cache, array = LayerCache(100 * SIZE), ARRAYS[0].copy()
    cache.put(KEYS[:2], [array, np.asfortranarray(ARRAYS[1])[:, ::1]])
    array[:] = 0
    for number, kept in enumerate(cache.get(KEYS[:2])):
        assert kept is not None
        assert (kept == ARRAYS[number]).all()
        assert kept.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 1


@pytest.mark.filterwarnings("ignore:the cache of the biLM:spacy_elmo.errors.CacheWarning")
@pytest.mark.parametrize("path", [None, "layers"])
def test_what_comes_first_stays_within_the_budget(tmp_path: Path, path: str | None) -> None:
    cache = LayerCache(3 * SIZE + SIZE // 2, path and str(tmp_path / path))
    for start in (0, 2, 4, 0):
        cache.put(KEYS[start : start + 2], ARRAYS[start : start + 2])
    assert (len(cache), cache.nbytes) == (3, 3 * SIZE)
    expected = [0, 1, 2] + ([None] * 3 if path is None else [3, 4, 5])
    assert numbers(cache.get(KEYS[:6])) == expected
    assert (len(cache), cache.nbytes) == (3, 3 * SIZE)
    small = np.ones((1, 1, 4), np.float64)  # 16 bytes as float32
    cache.put([b"small"], [small])
    assert cache.nbytes == 3 * SIZE + 16


def test_a_full_memory_is_told_once() -> None:
    cache = LayerCache(SIZE)
    with pytest.warns(CacheWarning):
        cache.put(KEYS[:2], ARRAYS[:2])
    cache.put(KEYS[2:3], ARRAYS[2:3])  # a second warning would be an error
    nothing = LayerCache(0)
    nothing.put(KEYS, ARRAYS)
    assert nothing.get(KEYS) == [None] * 10
    assert (len(nothing), nothing.nbytes) == (0, 0)


def test_a_later_run_reads_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "layers")
    LayerCache(2 * SIZE, path).put(KEYS[:5], ARRAYS[:5])
    without = LayerCache(0, path)
    assert numbers(without.get(KEYS[:6])) == [0, 1, 2, 3, 4, None]
    assert len(without) == 0
    later = LayerCache(3 * SIZE, path)
    assert numbers(later.get([KEYS[4], KEYS[4], KEYS[7], KEYS[3]])) == [4, 4, None, 3]
    assert (len(later), later.nbytes) == (2, 2 * SIZE)
    later.close()
    assert numbers(later.get(KEYS[:5])) == [0, 1, 2, 3, 4]
    assert len(later) == 3
    for array in (*later.get(KEYS[:5]), *without.get(KEYS[:5])):
        assert array is not None
        assert not array.flags.writeable


def test_what_is_in_memory_is_not_asked_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "layers"
    cache = LayerCache(5 * SIZE, str(path))
    cache.put(KEYS[:5], ARRAYS[:5])
    path.write_bytes(b"damaged")
    assert numbers(cache.get(KEYS[:5])) == [0, 1, 2, 3, 4]
    with pytest.raises(CacheError, match="delete"):
        cache.get(KEYS[:6])


def test_a_bad_path_is_refused(tmp_path: Path) -> None:
    address, folder = "an address on the network", "a folder or a special file. Set cache_file"
    refused = {"https://example.org/layers": address, "s3://bucket/layers": address, str(tmp_path): folder}
    for path, message in [*refused.items(), ("", "a folder"), ("a\0b", "a NUL character")]:
        with pytest.raises(CacheError, match=message):
            LayerCache(0, path)


def test_it_pickles_and_copies_without_its_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "layers")
    for cache, expected in ((LayerCache(10 * SIZE), [None] * 10), (LayerCache(10 * SIZE, path), list(range(10)))):
        cache.put(KEYS, ARRAYS)
        dumped = pickle.dumps(cache)
        assert len(dumped) < SIZE
        for other in (pickle.loads(dumped), copy.deepcopy(cache)):
            assert (len(other), other.nbytes, other.max_bytes) == (0, 0, 10 * SIZE)
            assert numbers(other.get(KEYS)) == expected
            other.put(KEYS, ARRAYS)
            assert len(other) == 10


@pytest.fixture
def interval() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.filterwarnings("ignore:the cache of the biLM:spacy_elmo.errors.CacheWarning")
@pytest.mark.parametrize("path", [None, "layers"])
def test_threads_share_it(tmp_path: Path, path: str | None, interval: None) -> None:
    cache = LayerCache(7 * SIZE, path and str(tmp_path / path))

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            chosen = [int(i) for i in rng.integers(0, 10, 4)]
            cache.put([KEYS[i] for i in chosen[:2]], [ARRAYS[i] for i in chosen[:2]])
            for i, got in zip(chosen, numbers(cache.get([KEYS[i] for i in chosen]))):
                assert got in (i, None)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    assert (len(cache), cache.nbytes) == (7, 7 * SIZE)


parts = st.tuples(st.binary(max_size=3), st.lists(st.text(max_size=3), max_size=4), st.binary(max_size=3))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(parts, parts)
def test_keys_are_equal_for_equal_rows_only(a: tuple, b: tuple) -> None:
    assert (row_key(*a) == row_key(*b)) == (a == b)


def test_keys() -> None:
    rows: list[list[str]] = [["ab"], ["a", "b"], ["a", "", "b"], ["a\0b"], ["b", "a"], ["", "ab"], ["ab", ""], []]
    rows += [[""], ["\ud800"], ["é"]]
    keys = [row_key(b"bilm", row, before) for row in rows for before in (b"", b"x", row_key(b"bilm", ["a"]))]
    keys += [row_key(b"bil", ["mab"]), row_key(b"", ["bilm", "ab"]), row_key(b"bilmab", []), row_key(b"ab", ["bilm"])]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}
    # what a file holds must be found by later versions: blake2b of each part after its length
    stored = bytes.fromhex("d096011783df636f94def01a9214c89865477eb6f95db8b717f10630f51fe9ff")
    assert row_key(b"bilm", ["a", "é"], b"x") == stored


def test_open_and_closed() -> None:
    cache = LayerCache(2**20)
    assert not cache.is_open
    cache.open()
    cache.put(KEYS[:1], ARRAYS[:1])
    for copied in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert copied.is_open
        assert len(copied) == 0
    cache.close()
    assert not cache.is_open
    assert len(cache) == cache.nbytes == 0


def test_a_file_is_checked_before_it_is_used(tmp_path: Path) -> None:
    LayerCache(0).check_file()
    LayerCache(0, str(tmp_path / "new")).check_file()
    assert (tmp_path / "new").stat().st_size
    (tmp_path / "garbage").write_bytes(b"no database" * 100)
    with pytest.raises(CacheError, match="garbage"):
        LayerCache(0, str(tmp_path / "garbage")).check_file()


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
    base = np.arange(48, dtype=np.float64).reshape(4, 3, 4) / 3
    LayersFile(path).write({b"view": base.transpose(1, 0, 2)[:, ::2]})  # of another type and order
    items[b"view"] = np.stack([base[0], base[2]], axis=1).astype(np.float32)
    file = LayersFile(path)
    assert_same(file.read([*items, b"unknown"]), items)
    assert file.read([]) == {}
    assert file.read([b"unknown"]) == {}
    assert not file.read([b"odd"])[b"odd"].flags.writeable


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


def test_a_missing_folder_is_named_at_the_first_use(tmp_path: Path) -> None:
    file = LayersFile(tmp_path / "no" / "layers")
    for use in (lambda: file.read([b"a"]), lambda: file.write(random_layers(1))):
        with pytest.raises(CacheError, match=f"the folder {tmp_path / 'no'} does not exist.*cache_file"):
            use()
    assert not (tmp_path / "no").exists()


def test_an_empty_file_is_used_and_a_deleted_one_created_again(path: Path) -> None:
    path.touch()
    file = LayersFile(path)
    file.write(random_layers(2))
    assert_same(LayersFile(path).read(list(random_layers(2))), random_layers(2))
    path.unlink()
    assert file.read(list(random_layers(2))) == {}
    file.write(random_layers(2))
    assert_same(file.read(list(random_layers(2))), random_layers(2))


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


def test_a_file_for_which_there_is_no_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.inference.cache._TABLE", "no SQL")
    with pytest.raises(CacheError, match="has no room, set cache_file to another place"):
        LayersFile(path).read([b"a"])
    with pytest.warns(CacheWarning, match="no more layers are written there"):
        LayersFile(path).write(random_layers(1))
    assert not path.exists()


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


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "a b#%41?.é", "-"])
def test_file_names_with_a_meaning_in_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    file = LayersFile(name)
    monkeypatch.chdir("/")
    file.write(random_layers(1))
    assert_same(LayersFile(tmp_path / name).read(list(random_layers(1))), random_layers(1))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_damaged_row_is_replaced_once_by_whoever_has_met_it(path: Path) -> None:
    old, new, later = (np.full((3, 1, 2), value, np.float32) for value in (1, 2, 3))

    def stored() -> dict[bytes, bytes]:
        with closing(sqlite3.connect(path)) as connection:
            return dict(connection.execute("SELECT key, data FROM layers"))

    LayersFile(path).write({b"a": old, b"b": old})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE layers SET crc = crc + 1 WHERE key = ?", [b"a"])
        connection.commit()
    file, other = LayersFile(path), LayersFile(path)
    for each in (file, other):
        assert each.read([b"a", b"b"]).keys() == {b"b"}
    other.write({b"c": new})  # it stays until it is written
    assert stored() == {b"a": old.tobytes(), b"b": old.tobytes(), b"c": new.tobytes()}
    other.write({b"a": new, b"b": new})
    assert stored() == {b"a": new.tobytes(), b"b": old.tobytes(), b"c": new.tobytes()}
    assert file.read([b"a"])[b"a"].tobytes() == new.tobytes()
    for each in (file, other):
        each.write({b"a": later, b"b": later})
    assert stored() == {b"a": new.tobytes(), b"b": old.tobytes(), b"c": new.tobytes()}
