"""Copies that begin at a large page."""

from __future__ import annotations

import sys

import pytest
import torch

from spacy_elmo.inference import large_pages
from spacy_elmo.inference.large_pages import PAGE, in_large_pages


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
    monkeypatch.setattr(large_pages, "_madvise", lambda: None)
    tensor = torch.arange(PAGE)
    assert in_large_pages(tensor) is tensor


def test_torchs_default_device_makes_no_difference() -> None:
    tensor = torch.arange(PAGE)
    with torch.device("meta"):
        got = in_large_pages(tensor)
    assert got.device.type == "cpu"
    assert torch.equal(got, tensor)
