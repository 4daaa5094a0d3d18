"""The random calls that `make sanitize` makes: each kind runs, and agrees with torch."""

from __future__ import annotations

import ctypes
from collections import Counter

import pytest

from scripts.harness.sanitize import random_calls
from scripts.harness.sanitize.build import BUILDS, TILES, environment
from scripts.harness.sanitize.draws import drawn
from spacy_elmo import kernels

pytestmark = pytest.mark.slow


def test_each_kind_of_call(monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL) -> None:
    monkeypatch.setattr(kernels, "load", lambda: compiled)
    random_calls._switch()
    names = Counter(random_calls.one_call(seed) for seed in range(70))
    assert names == Counter({make.__name__: 10 for make in random_calls.CALLS})


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL) -> None:
    monkeypatch.setattr(kernels, "load", lambda: compiled)
    random_calls._switch()

    def different(g: object) -> list[object]:
        drawn.odd = False
        return [random_calls.torch.ones(3) * (2 if getattr(random_calls._ALONE, "in_torch", False) else 1)]

    monkeypatch.setattr(random_calls, "CALLS", (different,))
    with pytest.raises(AssertionError, match="different"):
        random_calls.one_call(0)


def test_the_builds() -> None:
    """The newest has AMX in plain memory; Python finds the copy before the installed package."""
    assert BUILDS["newest"] == ["-include", str(TILES)]
    assert TILES.is_file()
    assert environment(TILES.parent)["PYTHONPATH"].startswith(str(TILES.parent))
