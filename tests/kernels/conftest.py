"""Runs a function compiled and in torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeVar

import pytest

from spacy_elmo import kernels

T = TypeVar("T")


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL) -> Callable[[Callable[[], T]], tuple[T, T]]:
    """What a function returns with the compiled loops and without them."""

    def run(function: Callable[[], T]) -> tuple[T, T]:
        results = []
        for library in (compiled, None):
            monkeypatch.setattr(kernels, "load", lambda library=library: library)
            results.append(function())
        return results[0], results[1]

    return run
