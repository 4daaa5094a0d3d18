"""Fixtures of all folders: the reference files, threads, and the LSTM cell in torch and compiled."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import catalogue
import pytest
import torch

from spacy_elmo import kernels

T = TypeVar("T")
TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
# what divides its work among as many threads as torch has
THREADED = ("inference", "allennlp", "models", "pipeline", "modules", "kernels")

# spaCy looks through the entry points of all packages for each name in a config: a third of the time of a pipeline
catalogue.Registry._get_entry_points = cache(catalogue.Registry._get_entry_points)

# what a shell starts in the background ignores SIGINT, and so would the processes that the tests start and interrupt
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# the same for what nohup starts and SIGHUP
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In a worker of pytest-xdist, put files with slow tests first, so that no worker is left with one at the end."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """Have torch use two threads in tests of what divides its work, also in a worker of pytest-xdist, which has one."""
    before = torch.get_num_threads()
    if request.path.relative_to(TESTS).parts[0] in THREADED:
        torch.set_num_threads(max(2, before))
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of random_a and random_b."""
    return GOLDEN


@pytest.fixture(scope="session")
def tiny_fixture() -> Path:
    """The folder of the small model that bilm-tf and AllenNLP test with."""
    folder = os.environ.get("SPACY_ELMO_REFERENCE")
    if not folder or not Path(folder, "tiny_fixture").is_dir():
        pytest.skip("SPACY_ELMO_REFERENCE does not name a folder that holds tiny_fixture")
    return Path(folder, "tiny_fixture")


@pytest.fixture(scope="session")
def compiled() -> ctypes.CDLL:
    """The compiled loops, as the package was built."""
    library = kernels.load()
    if library is None:
        assert shutil.which("cc") is None, "there is a C compiler, but the package was installed without its loops"
        pytest.skip("there is no C compiler named cc")
    return library


@pytest.fixture(params=["torch", "compiled"])
def cell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test twice, with the LSTM cell in torch and compiled."""
    used = request.getfixturevalue("compiled") if request.param == "compiled" else None
    monkeypatch.setattr(kernels, "load", lambda: used)
    return str(request.param)


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
