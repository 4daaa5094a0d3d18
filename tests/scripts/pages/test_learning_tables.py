"""The section on how the biLMs learned: its table against records made by hand, and damaged records."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.bilms.record_run import learning_folder
from scripts.pages.learning_tables import learning_parts
from spacy_elmo.errors import CommandError

RECORD = {
    "bilm": "en_mini",
    "title": "run 1",
    "machine": "a processor",
    "minutes": 61.7,
    "tokens_before": 0,
    "evaluations": [[1_000_000, 300.0], [12_400_000, 150.26]],
}


def add(project: Path, name: str, **other: Any) -> None:
    path = learning_folder(project) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RECORD | other), encoding="utf-8")


def test_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert learning_parts(tmp_path, page) == []
    add(tmp_path, "a", bilm="another")
    add(tmp_path, "b", tokens_before=12_400_000, title="run 2")
    add(tmp_path, "c", bilm="en_midi")
    parts = learning_parts(tmp_path, page)
    rows = parts[2].splitlines()[2:]
    assert rows == [  # en_mini is explained first
        "| `en_mini`, run 2 | 12 | 12 | 62 | 150.3 | a processor |",
        "| `en_midi`, run 1 | 0 | 12 | 62 | 150.3 | a processor |",
        "| `another`, run 1 | 0 | 12 | 62 | 150.3 | a processor |",
    ]
    assert "page_pretraining.png" in parts[-1]
    assert (tmp_path / "page_pretraining.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", list(RECORD))
def test_damaged_records(tmp_path: Path, name: str) -> None:
    add(tmp_path, "a", **{name: []})
    with pytest.raises(CommandError, match=r"a\.json: can't be used .* Expected what record_run\.py writes"):
        learning_parts(tmp_path, tmp_path / "page.md")
