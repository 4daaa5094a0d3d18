"""What makes runs of a second quicker than they are for users, and no environment of torchrun."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from spacy_elmo.formats import contents, weights
from spacy_elmo.pretraining import evaluating


def ask(task: Callable[..., Any], path: str | os.PathLike[str], arguments: Mapping[str, Any], *_: object) -> Any:
    """What `untrusted.ask` returns, without a process for each file. tests/formats has those."""
    facts, arrays = task(os.fspath(path), **arguments)
    return facts, arrays, []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files of strangers in this process, draw no curve, and be the only process."""
    monkeypatch.setattr(contents, "ask", ask)
    monkeypatch.setattr(weights, "ask", ask)
    monkeypatch.setattr(evaluating, "draw_curve", lambda path, rows: False)
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(variable, raising=False)
