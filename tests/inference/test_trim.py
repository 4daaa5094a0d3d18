"""Free memory, given back."""

import ctypes
import sys
from pathlib import Path

import pytest

from spacy_elmo.inference import trim


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_small_pieces_occupied() -> None:
    pieces = [bytearray(4000) for _ in range(20_000)]
    kept = pieces[::100]
    before = resident()
    del pieces
    trim.trim()
    assert resident() < before - 10_000  # of 4 KB
    assert len(kept) == 200


def test_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trim.sys, "platform", "darwin")
    monkeypatch.setattr(trim.ctypes, "CDLL", None)
    trim.trim()
