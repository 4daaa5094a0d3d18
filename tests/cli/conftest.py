"""What the tests of commands share."""

from pathlib import Path

import pytest
from reading import read_here


@pytest.fixture
def apart() -> None:
    """Reads HDF5 files of strangers in a process of its own, as users' commands do."""


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads HDF5 files of strangers in this process, but for tests that ask for `apart`."""
    if "apart" not in request.fixturenames:
        read_here(monkeypatch)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Four lines with the word bank."""
    path = tmp_path / "text.txt"
    path.write_text("We sat on the bank .\nThe bank lent us money .\nNo word .\nThe old bank\n", encoding="utf8")
    return path
