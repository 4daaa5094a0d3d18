"""The cache of layers in memory and in a file, and its keys."""

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

from spacy_elmo.errors import CacheError, CacheWarning
from spacy_elmo.inference.cache import LayerCache, row_key

Layers = dict[bytes, np.ndarray]
NOBODY = 65534  # user id without rights


def random_layers(number: int, words: int = 4) -> Layers:
    """Random layers by keys of 32 bytes. The same arguments give the same layers."""
    rng = np.random.default_rng(words)
    arrays = (rng.standard_normal((3, words, 256)).astype(np.float32) for _ in range(number))
    return {bytes([words]) + i.to_bytes(31, "big"): array for i, array in enumerate(arrays)}


TEN = random_layers(10)
KEYS = list(TEN)
SIZE = 3 * 4 * 256 * 4


def some(*numbers: int) -> Layers:
    """Those of TEN."""
    return {KEYS[i]: TEN[KEYS[i]] for i in numbers}


def assert_same(got: Layers, expected: Layers) -> None:
    assert got.keys() == expected.keys()
    for key, array in expected.items():
        assert (got[key].dtype, got[key].shape) == (np.float32, array.shape)
        assert got[key].tobytes() == array.tobytes()
        assert not got[key].flags.writeable


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layers"


def stored(path: Path, keys: Layers) -> Layers:
    """What a later run finds in a file."""
    return LayerCache(0, str(path)).get(keys)


def store(path: Path, arrays: Layers) -> None:
    LayerCache(0, str(path)).put(arrays)


def execute(path: Path, command: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(command, values)
        connection.commit()


# In memory


def test_memory_alone() -> None:
    cache = LayerCache(100 * SIZE)
    assert cache.get(KEYS[:2]) == {}
    given = {key: array.copy() for key, array in some(0, 1, 2).items()}
    given[KEYS[1]] = given[KEYS[1]][:, ::-1][:, ::-1]
    cache.put(given)
    for array in given.values():
        array[:] = 0
    cache.put(dict.fromkeys(given, TEN[KEYS[5]]))  # what is there stays
    assert_same(cache.get([KEYS[2], b"unknown", KEYS[0], KEYS[2]]), some(0, 2))
    assert_same(cache.get(KEYS[:3]), some(0, 1, 2))
    assert (len(cache), cache.nbytes) == (3, 3 * SIZE)
    cache.close()
    assert cache.get(KEYS[:3]) == {}
    assert (len(cache), cache.nbytes) == (0, 0)


@pytest.mark.filterwarnings("ignore:the cache of the biLM:spacy_elmo.errors.CacheWarning")
@pytest.mark.parametrize("name", [None, "layers"])
def test_what_comes_first_stays_within_the_budget(tmp_path: Path, name: str | None) -> None:
    cache = LayerCache(3 * SIZE + SIZE // 2, name and str(tmp_path / name))
    for start in (0, 2, 4, 0):
        cache.put(some(start, start + 1))
    for _ in range(2):
        assert (len(cache), cache.nbytes) == (3, 3 * SIZE)
        assert_same(cache.get(KEYS[:7]), some(0, 1, 2) if name is None else some(*range(6)))
    cache.put({b"small": np.ones((1, 1, 4), np.float32)})
    assert cache.nbytes == 3 * SIZE + 16


def test_a_full_memory_is_told_once() -> None:
    cache = LayerCache(SIZE)
    with pytest.warns(CacheWarning):
        cache.put(some(0, 1))
    cache.put(some(2))  # a second warning would be an error
    nothing = LayerCache(0)
    nothing.put(TEN)
    assert nothing.get(KEYS) == {}


def test_what_is_in_memory_is_not_asked_of_the_file(path: Path) -> None:
    store(path, some(0, 1, 2))
    cache = LayerCache(5 * SIZE, str(path))
    assert_same(cache.get(KEYS[:3]), some(0, 1, 2))
    assert len(cache) == 3
    path.write_bytes(b"damaged")
    assert_same(cache.get(KEYS[:3]), some(0, 1, 2))
    with pytest.raises(CacheError, match="delete"):
        cache.get(KEYS[:4])


def test_copies_and_pickles_have_its_settings_and_file_alone(path: Path) -> None:
    for cache, expected in ((LayerCache(10 * SIZE), {}), (LayerCache(10 * SIZE, str(path)), TEN)):
        assert not cache.is_open
        cache.open()
        cache.put(TEN)
        dumped = pickle.dumps(cache)
        assert len(dumped) < SIZE
        for other in (pickle.loads(dumped), copy.deepcopy(cache)):
            assert (len(other), other.nbytes, other.max_bytes, other.is_open) == (0, 0, 10 * SIZE, True)
            assert_same(other.get(KEYS), expected)
            other.put(TEN)
            assert len(other) == 10
        cache.close()
        assert not cache.is_open


def test_threads_share_it(path: Path) -> None:
    cache, before = LayerCache(7 * SIZE, str(path)), sys.getswitchinterval()

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(15):
            first, second, third = rng.integers(0, 10, 3).tolist()
            cache.put(some(first, second))
            got = cache.get([KEYS[first], KEYS[third]])
            assert KEYS[first] in got
            assert_same(got, {key: TEN[key] for key in got})

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(run, range(8)))
    finally:
        sys.setswitchinterval(before)
    assert (len(cache), cache.nbytes) == (7, 7 * SIZE)


def test_keys() -> None:
    rows: list[list[str]] = [["ab"], ["a", "b"], ["a", "", "b"], ["a\0b"], ["b", "a"], ["", "ab"], ["ab", ""], []]
    rows += [[""], ["\ud800"], ["é"]]
    keys = [row_key(b"bilm", row, before) for row in rows for before in (b"", b"x", row_key(b"bilm", ["a"]))]
    keys += [row_key(b"bil", ["mab"]), row_key(b"", ["bilm", "ab"]), row_key(b"bilmab", []), row_key(b"ab", ["bilm"])]
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {32}
    # what a file holds must be found by later versions: blake2b of each part after its length
    known = bytes.fromhex("d096011783df636f94def01a9214c89865477eb6f95db8b717f10630f51fe9ff")
    assert row_key(b"bilm", ["a", "é"], b"x") == known


# The file


def test_values_are_read_bit_for_bit(path: Path) -> None:
    items = random_layers(1200, 2)
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], np.float32)
    odd.view(np.int32)[0] |= 0x1234  # a NaN with a payload
    items |= {b"odd": odd.reshape(3, 1, 2), b"empty": np.zeros((3, 0, 256), np.float32)}
    items[b"view"] = np.arange(48, dtype=np.float32).reshape(4, 3, 4).transpose(1, 0, 2)[:, ::2]
    store(path, items)
    assert_same(LayerCache(0, str(path)).get([*items, b"unknown"]), items)


def test_contents_of_the_file(path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    store(path, {b"key": array})
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"eLMo", "big"),)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        ((key, shape, _, data),) = connection.execute("SELECT key, shape, crc, data FROM layers").fetchall()
    assert key == b"key"
    assert shape == b"".join(size.to_bytes(8, "little") for size in (3, 1, 2))
    assert data == array.astype("<f4").tobytes()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_arrays_too_large_for_sqlite_are_left_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.inference.cache._MAX_BYTES", SIZE)
    store(path, TEN | random_layers(2, 5))
    assert_same(stored(path, TEN | random_layers(2, 5)), TEN)


def test_an_empty_file_is_used_and_a_deleted_one_created_again(path: Path) -> None:
    path.touch()
    cache = LayerCache(0, str(path))
    cache.put(TEN)
    assert_same(stored(path, TEN), TEN)
    path.unlink()
    cache.check_file()
    assert path.stat().st_size
    assert cache.get(KEYS) == {}
    cache.put(TEN)
    assert_same(stored(path, TEN), TEN)


def test_names_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some have a meaning in SQLite."""
    address, folder = "an address on the network", "a folder or a special file. Set cache_file"
    refused = {"https://example.org/layers": address, "s3://bucket/layers": address, str(tmp_path): folder}
    for name, message in (refused | {"": "a folder"}).items():
        with pytest.raises(CacheError, match=message):
            LayerCache(0, name)
    names = (":memory:", "file:x?mode=memory", "a b#%41?.é", "-")
    for name in names:
        monkeypatch.chdir(tmp_path)
        cache = LayerCache(0, name)
        monkeypatch.chdir("/")
        cache.put(TEN)
        assert_same(stored(tmp_path / name, TEN), TEN)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)


def check_refused(path: Path, message: str) -> None:
    cache, before = LayerCache(0, str(path)), {file: file.read_bytes() for file in path.parent.iterdir()}
    for use in (cache.check_file, lambda: cache.get(KEYS), lambda: cache.put(TEN)):
        with pytest.raises(CacheError, match=message):
            use()
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("content", [b"x", b"text\n" * 1000, b"SQLite format 3\0", bytes(4096)])
def test_another_kind_of_file_is_refused_and_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    check_refused(path, r"not a file of cached layers, but .*Set cache_file to another file, or delete")


def test_another_database_is_refused_and_untouched(path: Path) -> None:
    """Also a database that is in use, with a part of its data in the journal."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE layers (key BLOB PRIMARY KEY, mine TEXT)")
        connection.execute("INSERT INTO layers VALUES (?, 'mine')", KEYS[:1])
        connection.commit()
        assert len(list(path.parent.iterdir())) == 3
        check_refused(path, "the application_id 7 and .*delete")


def test_another_version_and_a_missing_folder_are_refused(path: Path) -> None:
    store(path, TEN)
    execute(path, "PRAGMA user_version = 2")
    check_refused(path, r"the version 2\. Expected .* the version 1\. .*delete")
    cache = LayerCache(0, str(path.parent / "no" / "layers"))
    for use in (lambda: cache.get(KEYS), lambda: cache.put(TEN)):
        with pytest.raises(CacheError, match=r"the folder .*no does not exist.*cache_file"):
            use()


# Damage


@pytest.mark.parametrize("words", [1, 20])  # a row that fits in SQLite's page, and a longer one
def test_a_damaged_row_is_missing_and_replaced(path: Path, words: int) -> None:
    items = random_layers(5, words)
    store(path, items)
    victim = list(items)[2]
    content = bytearray(path.read_bytes())
    content[content.index(items[victim].tobytes()[-64:-32]) + 5] ^= 0x10
    path.write_bytes(content)
    assert_same(stored(path, items), {key: array for key, array in items.items() if key != victim})
    store(path, {victim: items[victim]})
    assert_same(stored(path, items), items)


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
    store(path, some(0, 1, 2))
    execute(path, f"UPDATE layers SET {change} WHERE key = ?", KEYS[0])
    assert_same(LayerCache(0, str(path)).get([*KEYS, b"\x01"]), some(1, 2))


def test_no_damage_gives_wrong_values(path: Path) -> None:
    """If any bytes are damaged, each row is intact or missing, or the file is refused."""
    items = random_layers(40, 1) | random_layers(10, 20)
    store(path, items)
    intact, rng, refused = path.read_bytes(), random.Random(0), 0
    for _ in range(100):
        content = bytearray(intact)
        for _ in range(rng.choice([1, 1, 50])):
            # half of the damage is in the first pages, which describe the table
            content[rng.randrange(rng.choice([len(intact), 12288]))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        for _ in range(2):
            try:
                got = stored(path, items)
            except CacheError:
                refused += 1
                break
            assert_same(got, {key: items[key] for key in got})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CacheWarning)
                store(path, {key: array for key, array in items.items() if key not in got})
    assert 0 < refused < 100
    for share in (0.0002, 0.02, 0.5, 0.99):
        path.write_bytes(intact[: int(share * len(intact))])
        with pytest.raises(CacheError, match=r"[Dd]elete"):
            stored(path, items)


# What can't be read or written


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


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o555), (0o644, 0o555)])
def test_read_only_files_and_folders_are_read(open_folder: Path, file_mode: int, folder_mode: int) -> None:
    path, other = open_folder / "layers", random_layers(4, 2)
    store(path, TEN)
    before = path.read_bytes()
    os.chmod(path, file_mode)
    os.chmod(open_folder, folder_mode)
    with unprivileged():
        cache = LayerCache(0, str(path))
        assert_same(cache.get(KEYS), TEN)
        with pytest.warns(CacheWarning, match="no more layers are written there.*cache_file"):
            cache.put(other)
        cache.put(other)  # no second warning: warnings are errors in tests
        assert_same(cache.get([*KEYS, *other]), TEN)
        with pytest.raises(CacheError, match=r"set cache_file|Set cache_file"):
            LayerCache(0, str(open_folder / "other")).check_file()
    assert path.read_bytes() == before
    assert [file.name for file in open_folder.iterdir()] == [path.name]
    os.chmod(path, 0)
    with unprivileged(), pytest.raises(CacheError, match="Permission denied"):
        stored(path, TEN)


def test_a_file_for_which_there_is_no_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.inference.cache._TABLE", "no SQL")
    with pytest.raises(CacheError, match="has no room, set cache_file to another place"):
        stored(path, TEN)
    with pytest.warns(CacheWarning, match="no more layers are written there"):
        store(path, TEN)
    assert not path.exists()


def test_a_full_disk_stops_only_writing(path: Path) -> None:
    first, second = random_layers(5), random_layers(60, 30)
    cache = LayerCache(0, str(path))
    cache.put(first)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.warns(CacheWarning, match="no more layers are written there"):
            cache.put(second)
        assert_same(cache.get([*first, *second]), first)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    cache.put(second)  # there is room again, but this object writes no more
    assert_same(stored(path, first | second), first)
    store(path, second)
    assert_same(stored(path, first | second), first | second)


# Other processes


def test_a_file_that_another_process_has_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.inference.cache._TIMEOUT", 0.05)
    store(path, TEN)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CacheError, match="locked"):
            stored(path, TEN)
        with pytest.warns(CacheWarning, match="locked"):
            store(path, random_layers(2, 2))


def forked(target: Callable[[], None]) -> BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=target)
    with warnings.catch_warnings():
        # Newer versions of Python warn if a process with threads forks, which is what is tested here.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


@pytest.mark.slow
def test_a_process_killed_while_it_writes(path: Path) -> None:
    """Also while it creates the file. The file opens afterwards, and each row is intact."""
    items = random_layers(200, 30)

    def write() -> None:
        for start in range(0, 200, 10):
            store(path, dict(list(items.items())[start : start + 10]))

    partly = 0
    for size in np.linspace(0, 17e6, 15):  # of 18.6 MB
        path.unlink(missing_ok=True)
        process = forked(write)
        while process.is_alive() and (not path.exists() or path.stat().st_size < size):
            time.sleep(1e-4)
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
        got = stored(path, items)
        assert len(got) % 10 == 0  # all arrays of a call, or none
        assert_same(got, {key: items[key] for key in got})
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        partly += 0 < len(got) < 200
    assert partly
    store(path, items)
    assert_same(stored(path, items), items)


def test_processes_that_write_at_the_same_time(path: Path) -> None:
    """Each process writes the same keys with other values, and its own keys. None of them finds a file at first."""
    barrier = multiprocessing.get_context("fork").Barrier(3)

    def own(number: int, i: int) -> Layers:
        return {b"own%d %d" % (number, i): np.full((3, 5, 64), number, np.float32)}

    def write(number: int) -> None:
        cache = LayerCache(0, str(path))
        barrier.wait(60)
        for i in range(20):
            same = b"same%d" % i
            cache.put(own(number, i) | {same: np.full((3, 5, 64), number, np.float32)})
            assert cache.get([same])[same][0, 0, 0] in (0, 1, 2)

    processes = [forked(lambda number=number: write(number)) for number in range(3)]
    for process in processes:
        process.join(60)
        process.kill()
        assert process.exitcode == 0
    for i in range(20):
        same = b"same%d" % i
        expected = own(0, i) | own(1, i) | own(2, i)
        got = LayerCache(0, str(path)).get([same, *expected])
        value = got.pop(same)
        assert value[0, 0, 0] in (0, 1, 2)
        assert (value == value[0, 0, 0]).all()
        assert_same(got, expected)
