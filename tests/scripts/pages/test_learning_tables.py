"""The section on how the biLMs learned: its table against records made by hand, and damaged records."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.bilms.record_run import learning_result_of
from scripts.pages.learning_runs import read_learning, training_of
from scripts.pages.learning_tables import learning_parts
from spacy_elmo.errors import CommandError

RECORD = {
    "bilm": "en_mini",
    "title": "run 1",
    "text": "a text",
    "machine": "a processor",
    "command": "python -m spacy elmo pretrain",
    "minutes": 61.7,
    "tokens_before": 0,
    "averaged": False,
    "evaluations": [[1_000_000, 300.0], [12_400_000, 150.26]],
}


def add(project: Path, name: str, **other: Any) -> None:
    path = learning_result_of(project, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(RECORD | other), encoding="utf-8")


def test_runs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert learning_parts(tmp_path, page) == []
    add(tmp_path, "a", bilm="another")
    add(tmp_path, "b", tokens_before=12_400_000, title="run 2", averaged=True)
    add(tmp_path, "c", bilm="en_midi")
    add(tmp_path, "d")
    parts = learning_parts(tmp_path, page)
    rows = parts[2].splitlines()[2:]
    assert rows == [
        "| `en_mini`, run 1 | a text | 0 | 12 | 62 | 150.3 | no | a processor |",
        "| `en_mini`, run 2 | a text | 12 | 12 | 62 | 150.3 | yes | a processor |",
        "| `en_midi`, run 1 | a text | 0 | 12 | 62 | 150.3 | no | a processor |",
        "| `another`, run 1 | a text | 0 | 12 | 62 | 150.3 | no | a processor |",
    ]
    assert "page_pretraining.png" in parts[-1]
    assert (tmp_path / "page_pretraining.png").read_bytes().startswith(b"\x89PNG")


def test_minutes_of_a_core(tmp_path: Path) -> None:
    """Those of a GPU are not counted, its tokens are: (60 * 2 + 30) minutes and 3 * 12.4 million tokens."""
    machines = (("Xeon, 2 cores", 60), ("EPYC, 1 core", 30), ("NVIDIA H100", 7))
    for number, (machine, minutes) in enumerate(machines):
        add(tmp_path, f"run_{number}", machine=machine, minutes=minutes)
    assert training_of(read_learning(tmp_path), "en_mini") == (150, 37_200_000)
    assert training_of(read_learning(tmp_path), "en_midi") is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, []) for name in RECORD if name != "averaged"),
        ("minutes", -1),
        ("tokens_before", 1e999),
        ("evaluations", [[1, -2.0]]),
        ("evaluations", [[1, float("inf")]]),
    ],
)
def test_damaged_records(tmp_path: Path, name: str, value: Any) -> None:
    add(tmp_path, "a", **{name: value})
    with pytest.raises(CommandError, match=r"a\.json: can't be used .* Expected what record_run\.py writes"):
        learning_parts(tmp_path, tmp_path / "page.md")
