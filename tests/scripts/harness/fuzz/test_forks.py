"""Work in a fork: it is done, and its crash is told and does no harm."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from scripts.harness.fuzz.forks import in_fork

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the harness needs Linux"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def test_work_is_done(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    in_fork(lambda: (tmp_path / "done").touch())
    assert (tmp_path / "done").exists()
    assert capfd.readouterr() == ("", "")


def test_a_crash_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    in_fork(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert capfd.readouterr().err == "what writes an input was ended by SIGKILL\n"
