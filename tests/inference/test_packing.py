"""Packing rows of different lengths, against plain padding."""

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
)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=10))
def test_steps_of_the_longest_rows_without_padding(lengths: list[int]) -> None:
    packing = Packing.of(lengths)
    rows = [100 * row + np.arange(length) for row, length in enumerate(lengths)]
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    steps = [[int(rows[row][t]) for row in order if t < lengths[row]] for t in range(max(lengths))]
    packed = np.concatenate(rows)[packing.source]
    assert packing.order.tolist() == order
    assert packing.lengths.tolist() == [lengths[row] for row in order]
    assert packing.active.tolist() == [len(step) for step in steps]
    assert [packed[begin : begin + n].tolist() for begin, n in zip(packing.offsets, packing.active)] == steps
    assert len(packed) == sum(lengths)
    np.testing.assert_array_equal(packed[packing.places], np.concatenate(rows))
    assert packed[packing.ends].tolist() == [rows[row][-1] for row in order]


@pytest.mark.parametrize(("threads", "rows", "groups"), [(1, 200, 1), (4, 63, 1), (4, 64, 2), (5, 999, 2), (8, 999, 4)])
def test_groups_of_about_equally_many_positions(threads: int, rows: int, groups: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 40, rows)
    slices = groups_of(lengths, threads)
    assert len(slices) == groups
    assert [row for part in slices for row in range(part.start, part.stop)] == list(range(rows))
    for part in slices:
        assert abs(int(lengths[part].sum()) - lengths.sum() / groups) <= 2 * 40
    slices = groups_of(np.array([1000] + [1] * 127), 8)  # a row as long as all others together
    assert [row for part in slices for row in range(part.start, part.stop)] == list(range(128))


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


def test_rows_on_another_device() -> None:
    """No values there: that the calls are torch's, and that they take such shapes."""
    table, out = torch.empty(4, 3, device="meta"), torch.empty(3, 3, device="meta")
    gather_rows(table, np.array([2, 0, 2]), out)
    scatter_rows(table, np.array([2, 0, 1]), out)


def test_the_same_memory_where_it_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has its own. What is very large is not kept."""
    buffers, of_a_thread = Buffers(), []
    large = buffers.empty("a", 10, 20)
    assert (large.shape, large.dtype) == ((10, 20), torch.float32)
    assert buffers.empty("b", 3).data_ptr() != large.data_ptr()
    assert buffers.empty("c", 2, 2, dtype=torch.float16).dtype == torch.float16
    thread = threading.Thread(target=lambda: of_a_thread.append(buffers.empty("a", 5)))
    thread.start()
    thread.join()
    assert of_a_thread[0].data_ptr() != large.data_ptr() == buffers.empty("a", 3).data_ptr()
    assert buffers.empty("a", 100, 20).shape == (100, 20)
    assert buffers.empty("a", 0, 20).shape == (0, 20)
    monkeypatch.setattr(memory, "MAX_BYTES", 100)
    for size, kept in ((26, False), (25, True)):
        assert buffers.empty("d", size).shape == (size,)
        assert ("d" in buffers._tensors) is kept


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_copy_in_large_pages(dtype: torch.dtype, transposed: bool) -> None:
    """Torch's default device makes no difference."""
    tensor = torch.arange(3 * PAGE // dtype.itemsize).to(dtype).view(3, -1)
    tensor = tensor.t() if transposed else tensor
    with torch.device("meta"):
        got = in_large_pages(tensor)
    assert torch.equal(got, tensor)
    assert got.is_contiguous()
    if sys.platform == "linux":
        assert got.data_ptr() % PAGE == 0
        assert got.data_ptr() != tensor.data_ptr()


def test_copies_of_small_tensors_and_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = torch.arange(1000), torch.arange(PAGE)
    monkeypatch.setattr(memory, "_c_function", lambda name: None)
    trim()
    for tensor in (small, large):
        got = in_large_pages(tensor)
        assert torch.equal(got, tensor)
        assert got.data_ptr() != tensor.data_ptr()


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
