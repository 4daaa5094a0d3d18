"""Memory that is used again."""

from __future__ import annotations

import threading

import pytest
import torch

from spacy_elmo.inference import buffers as buffers_module
from spacy_elmo.inference.buffers import Buffers


def test_the_same_memory_where_it_suffices() -> None:
    buffers = Buffers()
    large = buffers.take("a", 10, 20)
    assert large.shape == (10, 20)
    assert large.dtype == torch.float32
    assert buffers.take("a", 3).data_ptr() == large.data_ptr()
    assert buffers.take("b", 3).data_ptr() != large.data_ptr()
    assert buffers.take("c", 2, 2, dtype=torch.float16).dtype == torch.float16
    assert buffers.take("a", 100, 20).shape == (100, 20)
    assert buffers.take("a", 0, 20).shape == (0, 20)


def test_each_thread_has_its_own() -> None:
    buffers, found = Buffers(), []
    here = buffers.take("a", 5)
    thread = threading.Thread(target=lambda: found.append(buffers.take("a", 5)))
    thread.start()
    thread.join()
    assert found[0].data_ptr() != here.data_ptr()
    assert buffers.take("a", 5).data_ptr() == here.data_ptr()


def test_what_is_very_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers_module, "MOST_BYTES", 100)
    buffers = Buffers()
    assert buffers.take("a", 26).shape == (26,)
    assert buffers._kept == {}
    assert buffers.take("a", 25).shape == (25,)
    assert list(buffers._kept) == ["a"]
