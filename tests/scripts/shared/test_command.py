"""A script that is stopped takes the process along that it waits for."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = """
import subprocess, sys
from scripts.shared.command import run_command

def main() -> None:
    subprocess.run([sys.executable, "-c", "import os, sys, time; print(os.getpid(), flush=True); time.sleep(60)"])

run_command(main)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
def test_sigterm() -> None:
    script = subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert script.stdout is not None
    child = int(script.stdout.readline())
    script.send_signal(signal.SIGTERM)
    assert script.wait(30) == 128 + signal.SIGTERM
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the child goes on")
    script.stdout.close()
