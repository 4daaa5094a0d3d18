"""What makes runs of a second quicker than they are for users, and no environment of torchrun."""

from __future__ import annotations

import pytest
from reading import read_here

from spacy_elmo.pretraining import run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files of strangers in this process, draw no curve, and be the only process."""
    read_here(monkeypatch)
    monkeypatch.setattr(run, "draw_curve", lambda path, rows: False)
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(variable, raising=False)
