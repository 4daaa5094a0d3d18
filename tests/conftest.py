"""Fixtures of all folders: the reference files, and the LSTM cell in torch and compiled."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
from pathlib import Path

import pytest

from spacy_elmo import kernels

GOLDEN = Path(__file__).parent / "golden"

# what a shell starts in the background ignores SIGINT, and so would the processes that the tests start and interrupt
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
