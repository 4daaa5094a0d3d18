"""What makes runs of a second quicker than they are for users, and no environment of torchrun."""

from __future__ import annotations

import pytest

from spacy_elmo.pretraining import run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no curve, and be the only process."""
    monkeypatch.setattr(run, "draw_curve", lambda path, rows: False)
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(variable, raising=False)
