"""Runs a function compiled and in torch; a copy of the project to build."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from build_cases import FILES, ROOT

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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what an installation is made of, without what was built here."""
    folder = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.hdf5", "*.pyc")
    shutil.copytree(ROOT / "spacy_elmo", folder / "spacy_elmo", ignore=ignored)
    for name in (*FILES, "MANIFEST.in"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder)
    return folder
