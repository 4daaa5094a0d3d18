"""What a result has beside its figures: commit, machine and minutes."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from scripts.shared import measurement
from scripts.shared.measurement import Measurement, commit_of, machine


def test_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 190.0])
    monkeypatch.setattr(measurement.time, "perf_counter", lambda: next(times))
    monkeypatch.setattr(measurement, "commit_of", lambda project: "abc123")
    monkeypatch.setattr(measurement, "machine", lambda: "a processor")
    Measurement().write(tmp_path / "new" / "x.json", "a command", {"a": 1})
    assert json.loads((tmp_path / "new" / "x.json").read_text(encoding="utf-8")) == {
        "command": "a command",
        "commit": "abc123",
        "machine": "a processor",
        "minutes": 1.5,
        "result": {"a": 1},
    }


def test_a_folder_without_commits(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    assert re.fullmatch(r".+, \d+ cores", machine())


def test_changed_code_is_told(tmp_path: Path) -> None:
    for name in ("scripts/a.py", "results/b.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)
    (tmp_path / "results/b.json").write_text("2")  # what runs write is no change of the code
    commit = commit_of(tmp_path)
    assert re.fullmatch("[0-9a-f]{7,}", commit)
    (tmp_path / "scripts/a.py").write_text("2")
    assert commit_of(tmp_path) == f"{commit}-dirty"
