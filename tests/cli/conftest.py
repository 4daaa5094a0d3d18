"""What the tests of commands share."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spacy_elmo.formats import contents, vectors, weights


@pytest.fixture
def apart() -> None:
    """Reads HDF5 files of strangers in a process of its own, as users' commands do."""


@pytest.fixture(autouse=True)
def here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads HDF5 files of strangers in this process, but for tests that ask for `apart`."""

    def ask(task: Callable[..., Any], path: Path, arguments: dict[str, Any], *_: Any, **__: Any) -> tuple[Any, ...]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            facts, arrays = task(path=os.fspath(path), **arguments)
        return facts, arrays, [str(warning.message) for warning in told]

    if "apart" not in request.fixturenames:
        for module in (contents, vectors, weights):
            monkeypatch.setattr(module, "ask", ask)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Four lines with the word bank."""
    path = tmp_path / "text.txt"
    path.write_text("We sat on the bank .\nThe bank lent us money .\nNo word .\nThe old bank\n", encoding="utf8")
    return path
