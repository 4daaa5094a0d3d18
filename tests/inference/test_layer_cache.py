"""The cache of layers in memory and in a file, and its keys."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.errors import CacheError, CacheWarning, SettingsError
from spacy_elmo.inference.cache import LayerCache, row_key

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
    cache.clear()
    assert cache.get(KEYS[:3]) == [None] * 3
    assert (len(cache), cache.nbytes) == (0, 0)
    cache.put([], [])
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
    cache.put(KEYS[:1], ARRAYS[:1])
    with pytest.warns(CacheWarning):
        cache.put(KEYS[1:2], ARRAYS[1:2])
    cache.put(KEYS[2:3], ARRAYS[2:3])  # a second warning would be an error


def test_without_budget_and_file_nothing_is_kept() -> None:
    cache = LayerCache(0)
    cache.put(KEYS, ARRAYS)
    assert cache.get(KEYS) == [None] * 10
    assert (len(cache), cache.nbytes) == (0, 0)


def test_a_later_run_reads_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "layers")
    LayerCache(2 * SIZE, path).put(KEYS[:5], ARRAYS[:5])
    without = LayerCache(0, path)
    assert numbers(without.get(KEYS[:6])) == [0, 1, 2, 3, 4, None]
    assert len(without) == 0
    later = LayerCache(3 * SIZE, path)
    assert numbers(later.get([KEYS[4], KEYS[4], KEYS[7], KEYS[3]])) == [4, 4, None, 3]
    assert (len(later), later.nbytes) == (2, 2 * SIZE)
    later.clear()
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


def test_a_file_that_can_not_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LayerCache(5 * SIZE, str(tmp_path / "layers"))
    assert cache.get(KEYS[:1]) == [None]
    monkeypatch.setattr("spacy_elmo.inference.cache._TABLE", "no SQL")
    (tmp_path / "layers").unlink()
    with pytest.raises(CacheError, match="can't be created"):
        cache.put(KEYS[:1], ARRAYS[:1])
    monkeypatch.undo()
    monkeypatch.setattr("spacy_elmo.inference.cache._to_row", lambda key, layers: (key,))
    with pytest.warns(CacheWarning):
        cache.put(KEYS[:2], ARRAYS[:2])
    cache.put(KEYS[2:3], ARRAYS[2:3])
    assert numbers(cache.get(KEYS[:3])) == [0, 1, 2]


@pytest.mark.parametrize("bad", [-1, 1.0, "1", None, True])
def test_max_bytes_must_be_a_whole_number(bad: object) -> None:
    with pytest.raises(SettingsError, match=r"max_bytes is .*Expected a whole number of bytes, 0 or more"):
        LayerCache(bad)  # type: ignore[arg-type]


def test_a_bad_path_is_refused(tmp_path: Path) -> None:
    for path in ("https://example.org/layers", str(tmp_path), "", "a\0b"):
        with pytest.raises(CacheError):
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
    rows = [
        ["ab"],
        ["a", "b"],
        ["a", "", "b"],
        ["a\0b"],
        ["b", "a"],
        ["", "ab"],
        ["ab", ""],
        [],
        [""],
        ["\ud800"],
        ["é"],
    ]
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
