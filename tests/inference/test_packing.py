"""Packing rows of different lengths, against plain padding."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.inference import packing as memory
from spacy_elmo.inference.packing import (
    PAGE,
    Buffers,
    Packing,
    Plan,
    gather_rows,
    groups_of,
    in_large_pages,
    plan_positions,
    plan_words,
    scatter_rows,
    trim,
    with_boundaries,
)

lengths_lists = st.lists(st.integers(1, 12), min_size=1, max_size=10)


def rows_of(lengths: list[int]) -> list[np.ndarray]:
    """Rows whose every item is unlike the others."""
    return [100 * row + np.arange(length) for row, length in enumerate(lengths)]


def test_a_case_by_hand() -> None:
    packing = Packing.of([2, 4, 1])
    assert packing.order.tolist() == [1, 0, 2]
    assert packing.lengths.tolist() == [4, 2, 1]
    assert packing.active.tolist() == [3, 2, 1, 1]
    assert packing.offsets.tolist() == [0, 3, 5, 6]
    items = np.array([10, 11, 20, 21, 22, 23, 30])
    assert items[packing.source].tolist() == [20, 10, 30, 21, 11, 22, 23]
    assert packing.places.tolist() == [1, 4, 0, 3, 5, 6, 2]
    assert packing.ends.tolist() == [6, 4, 2]


@given(lengths_lists)
def test_time_major_without_padding(lengths: list[int]) -> None:
    packing, rows = Packing.of(lengths), rows_of(lengths)
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    assert packing.order.tolist() == order
    expected = [rows[row][t] for t in range(max(lengths)) for row in order if t < lengths[row]]
    packed = np.concatenate(rows)[packing.source]
    assert packed.tolist() == expected
    np.testing.assert_array_equal(packed[packing.places], np.concatenate(rows))


@given(lengths_lists)
def test_steps_are_slices_of_the_rows_still_active(lengths: list[int]) -> None:
    packing = Packing.of(lengths)
    assert packing.active.tolist() == [sum(length > t for length in lengths) for t in range(max(lengths))]
    assert packing.offsets[0] == 0
    ends = (packing.offsets + packing.active).tolist()
    assert packing.offsets[1:].tolist() == ends[:-1]
    assert ends[-1] == sum(lengths)


@given(lengths_lists)
def test_each_rows_last_item(lengths: list[int]) -> None:
    packing, rows = Packing.of(lengths), rows_of(lengths)
    packed = np.concatenate(rows)[packing.source]
    assert packed[packing.ends].tolist() == [rows[row][-1] for row in packing.order]


@given(st.lists(st.integers(0, 5), max_size=10))
def test_each_row_between_its_boundaries(lengths: list[int]) -> None:
    words = np.arange(2, 2 + sum(lengths))
    rows = np.split(words, np.cumsum(lengths)[:-1]) if lengths else []
    expected = [index for row in rows for index in (0, *row.tolist(), 1)]
    assert with_boundaries(words, np.array(lengths, np.int64)).tolist() == expected


@pytest.mark.parametrize(("threads", "rows", "groups"), [(1, 200, 1), (4, 63, 1), (4, 64, 2), (5, 999, 2), (8, 999, 4)])
def test_groups_of_about_equally_many_positions(threads: int, rows: int, groups: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 40, rows)
    slices = groups_of(lengths, threads)
    assert len(slices) == groups
    assert [row for part in slices for row in range(part.start, part.stop)] == list(range(rows))
    for part in slices:
        assert abs(int(lengths[part].sum()) - lengths.sum() / groups) <= 2 * 40


def test_a_row_as_long_as_all_others_together() -> None:
    lengths = np.array([1000] + [1] * 127)
    covered = [row for part in groups_of(lengths, 8) for row in range(part.start, part.stop)]
    assert covered == list(range(128))


CPU = torch.device("cpu")
texts = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=8)


def sources(plan: Plan, packing: Packing, rows: torch.Tensor) -> list[int]:
    """The row of the input whose input sum each position reads. rows: numbers, which stand for their input sums."""
    bounds = np.append(packing.offsets, len(packing.source))
    read: list[int] = []
    for first, steps, begin, count in plan.chunks.tolist():
        chosen = slice(begin, begin + count) if plan.by_chunk is None else plan.by_chunk[begin : begin + count]
        sums = torch.cat([rows[plan.precomputed], rows[chosen]])
        assert len(sums) <= plan.n_sums
        read += sums[plan.places[bounds[first] : bounds[first + steps]]].tolist()
    return read


def steps_of(plan: Plan) -> list[int]:
    return [step for first, steps, *_ in plan.chunks.tolist() for step in range(first, first + steps)]


@given(texts, st.integers(0, 4), st.integers(1, 20))
def test_plan_of_words(text: list[list[int]], limit: int, most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    words = np.concatenate(text)[packing.source]
    plan = plan_words(packing, words, limit, most, CPU)
    assert sources(plan, packing, torch.arange(7)) == words.tolist()
    assert steps_of(plan) == list(range(len(packing.active)))
    precomputed = np.asarray(plan.precomputed).tolist()
    times = np.bincount(words, minlength=7)
    repeated = [word for word in range(7) if times[word] > 1]
    assert len(precomputed) == min(limit, len(repeated))
    assert set(precomputed) <= set(repeated)
    assert all(times[word] <= min(times[precomputed], default=99) for word in set(repeated) - set(precomputed))
    assert plan.by_chunk is not None
    assert len(plan.by_chunk) == sum(1 for word in words if word not in precomputed)


@given(texts, st.integers(1, 20))
def test_plan_of_positions(text: list[list[int]], most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    plan = plan_positions(packing, most, CPU)
    assert sources(plan, packing, torch.arange(len(packing.source))) == list(range(len(packing.source)))
    assert steps_of(plan) == list(range(len(packing.active)))
    assert plan.by_chunk is None
    for first, steps, *_ in plan.chunks.tolist():
        rows = packing.active[first : first + steps].sum()
        assert steps == 1 or rows <= most
        assert first + steps == len(packing.active) or rows + packing.active[first + steps] > most


@given(texts, st.integers(1, 20))
def test_table_of_chunks_read_backward(text: list[list[int]], most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    plan = plan_positions(packing, most, CPU)
    forward, backward = (plan.chunks_read(way).tolist() for way in (False, True))
    n = len(packing.active)
    assert backward == [[n - first - steps, steps, *rows] for first, steps, *rows in forward[::-1]]
    assert [first for first, *_ in backward] == np.cumsum([0, *(steps for _, steps, *_ in backward)])[:-1].tolist()


TABLE = torch.arange(12.0).view(4, 3)
PLACES = np.array([2, 0, 2])


def test_taken() -> None:
    out = torch.full((3, 3), -1.0)
    gather_rows(TABLE, PLACES, out)
    assert out.tolist() == [[6, 7, 8], [0, 1, 2], [6, 7, 8]]
    gather_rows(TABLE, PLACES[:0], out[:0])
    room = torch.full((5, 3), -1.0)
    gather_rows(TABLE, PLACES, room[1:4])
    assert room[:, 0].tolist() == [-1, 6, 0, 6, -1]


def test_put() -> None:
    table = TABLE.clone()
    scatter_rows(table, np.array([3, 1]), torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert table.tolist() == [[0, 1, 2], [4, 5, 6], [6, 7, 8], [1, 2, 3]]
    scatter_rows(table, PLACES[:0], TABLE[:0])


@pytest.mark.parametrize("device", ["meta"])
def test_another_device(device: str) -> None:
    """No values there: that the calls are torch's, and that they take such shapes."""
    table, out = TABLE.to(device), torch.empty(3, 3, device=device)
    gather_rows(table, PLACES, out)
    scatter_rows(table, PLACES, out)


# Buffers


def test_the_same_memory_where_it_suffices() -> None:
    buffers = Buffers()
    large = buffers.empty("a", 10, 20)
    assert large.shape == (10, 20)
    assert large.dtype == torch.float32
    assert buffers.empty("a", 3).data_ptr() == large.data_ptr()
    assert buffers.empty("b", 3).data_ptr() != large.data_ptr()
    assert buffers.empty("c", 2, 2, dtype=torch.float16).dtype == torch.float16
    assert buffers.empty("a", 100, 20).shape == (100, 20)
    assert buffers.empty("a", 0, 20).shape == (0, 20)


def test_each_thread_has_its_own() -> None:
    buffers, found = Buffers(), []
    here = buffers.empty("a", 5)
    thread = threading.Thread(target=lambda: found.append(buffers.empty("a", 5)))
    thread.start()
    thread.join()
    assert found[0].data_ptr() != here.data_ptr()
    assert buffers.empty("a", 5).data_ptr() == here.data_ptr()


def test_what_is_very_large_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_BYTES", 100)
    buffers = Buffers()
    assert buffers.empty("a", 26).shape == (26,)
    assert buffers._tensors == {}
    assert buffers.empty("a", 25).shape == (25,)
    assert list(buffers._tensors) == ["a"]


# Large pages


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16], ids=str)
def test_a_copy(dtype: torch.dtype) -> None:
    tensor = torch.arange(3 * PAGE // dtype.itemsize + 7).to(dtype)
    got = in_large_pages(tensor)
    assert torch.equal(got, tensor)
    assert got.is_contiguous()
    if sys.platform == "linux":
        assert got.data_ptr() % PAGE == 0
        assert got.data_ptr() != tensor.data_ptr()


def test_axes_in_another_order() -> None:
    tensor = torch.arange(2**21, dtype=torch.float32).view(2**10, 2**11).t()
    assert not tensor.is_contiguous()
    got = in_large_pages(tensor)
    assert torch.equal(got, tensor)
    assert got.shape == tensor.shape


def test_small_ones_stay() -> None:
    tensor = torch.arange(1000)
    assert in_large_pages(tensor) is tensor


def test_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_madvise", lambda: None)
    tensor = torch.arange(PAGE)
    assert in_large_pages(tensor) is tensor


def test_torchs_default_device_makes_no_difference() -> None:
    tensor = torch.arange(PAGE)
    with torch.device("meta"):
        got = in_large_pages(tensor)
    assert got.device.type == "cpu"
    assert torch.equal(got, tensor)


# Free memory


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_small_pieces_occupied() -> None:
    pieces = [bytearray(4000) for _ in range(20_000)]
    held = pieces[::100]
    before = resident()
    del pieces
    trim()
    assert resident() < before - 10_000  # of 4 KB
    assert len(held) == 200


def test_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    monkeypatch.setattr(memory.ctypes, "CDLL", None)
    trim()


# Modules


@pytest.mark.slow
def test_the_first_doc_imports_no_part_of_torch() -> None:
    """torch loads some of its parts only when they are used, and they take up to 70 MB."""
    script = """
import sys, spacy, spacy_elmo
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
before = set(sys.modules)
assert nlp("A bank .")[0]._.elmo.any()
print([name for name in set(sys.modules) - before if name.split(".")[0] in ("torch", "sympy")])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr
