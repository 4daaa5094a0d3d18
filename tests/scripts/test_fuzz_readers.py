"""The script that reads changed files finds exceptions that are not this package's, and hangs."""

import random
import sys
import time
from pathlib import Path

import fuzz_readers
import pytest


def test_readers_that_raise_other_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "a").write_bytes(b"abc")

    def read(folder: Path) -> None:
        if (folder / "a").read_bytes()[:1] != b"a":
            raise KeyError("foreign")

    kind = fuzz_readers.Kind(make, read)
    outcomes, foreign = fuzz_readers.fuzz(kind, 0.1, random.Random(0), tmp_path / "found")
    assert outcomes["foreign"] == foreign.total() > 0
    assert outcomes["loaded"] > 0
    assert [name.split(" at ")[0] for name in foreign] == ["KeyError"]
    assert [path.read_bytes()[:1] == b"a" for path in (tmp_path / "found").iterdir()] == [False]


def test_readers_that_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_readers, "HANGS_AFTER", 1)
    fuzz_readers.signal.signal(fuzz_readers.signal.SIGALRM, fuzz_readers._raise_hang)
    outcome, place = fuzz_readers._outcome(lambda _: time.sleep(30), tmp_path)
    assert outcome == "foreign"
    assert place is not None
    assert place.startswith("Hang at ")


@pytest.mark.slow
def test_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = ["options", "metrics", "configs", "vocabularies", "prepared texts", "texts inside"]
    monkeypatch.setattr(
        sys, "argv", ["fuzz", "--minutes", "0.002", "--found", str(tmp_path / "found"), "--kinds", *kinds]
    )
    assert fuzz_readers.main() == 0
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert sorted(line[0] for line in lines) == sorted(kinds)
    assert all(line[4] == "none" for line in lines)
    assert not (tmp_path / "found").exists()
