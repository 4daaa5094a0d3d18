"""Buffers that batches share, copies that begin at a large page, free memory handed back."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from spacy_elmo.inference import packing as memory
from spacy_elmo.inference.packing import PAGE, Buffers, in_large_pages, trim

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
