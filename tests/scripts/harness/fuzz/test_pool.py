"""What an input does is told apart: read, refused, another exception, a crash, a hang, too much memory."""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

import pytest

from scripts.harness.fuzz import pool
from scripts.harness.fuzz.pool import Target, run
from spacy_elmo.errors import WeightsError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")]


def make(folder: Path, random: Random) -> None:
    (folder / "input").write_text(str(random.random()))


def load(folder: Path) -> None:
    """The seed's number of seven tells what happens."""
    kind = [Random(seed).random() for seed in range(7)].index(float((folder / "input").read_text()))
    if kind == 1:
        raise WeightsError("refused")
    if kind == 2:
        raise KeyError("not this package's")
    if kind == 3:
        faulthandler.disable()  # or the abort prints pages among pytest's lines
        os.abort()
    if kind == 4:
        while True:
            pass
    if kind == 5:
        bytearray(3 * 2**30)
    if kind == 6:
        time.sleep(60)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_kinds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pool, "SECONDS", 1)
    outcomes = run(Target(make, load), count(0), 1, tmp_path)
    findings = [next(outcomes) for _ in range(6)]
    outcomes.close()  # type: ignore[attr-defined]
    kinds = [None if finding is None else finding.kind.split()[0] for finding in findings]
    assert kinds == [None, None, "KeyError", "crash", "hang", "memory"]
    for seed, finding in enumerate(findings[2:], 2):
        assert finding is not None
        assert finding.seed == seed
        assert not finding.contained
        assert (finding.folder / "input").read_text() == str(Random(seed).random())
        assert finding.detail.splitlines()[-1] in (finding.folder / "finding.txt").read_text()
    assert Counter(path.name for path in tmp_path.iterdir()) == Counter(f"seed-{n}" for n in range(2, 6))
    assert findings[4] is not None
    assert findings[4].detail == "more than 1 s of processor time"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_waiting_is_a_hang_by_the_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pool, "WAITING_SECONDS", 1.0)
    outcomes = run(Target(make, load), count(6), 1, tmp_path)
    finding = next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert finding is not None
    assert (finding.kind, finding.detail) == ("hang", "more than 1 s by the clock")


def read_safely(folder: Path) -> None:
    if Random(3).random() == float((folder / "input").read_text()):
        raise WeightsError("refused")
    raise KeyError("not this package's")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_a_process_of_its_own_makes_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pool, "SECONDS", 1)
    outcomes = run(Target(make, load, read_safely), count(2), 1, tmp_path)
    findings = [next(outcomes) for _ in range(4)]
    outcomes.close()  # type: ignore[attr-defined]
    assert [(finding.kind.partition(" ")[0], finding.contained) for finding in findings if finding is not None] == [
        ("KeyError", False),
        ("crash", True),
        ("hang,", False),
        ("memory,", False),
    ]
