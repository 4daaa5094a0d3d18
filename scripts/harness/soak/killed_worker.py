"""A worker of nlp.pipe(n_process=2) that is killed in the middle."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import spacy

_SECONDS = 30.0


def killed_worker() -> str:
    """Kill a worker, and tell whether the parent process ends within 30 seconds, and how."""
    command = [sys.executable, "-m", "harness.soak.killed_worker"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    start = time.monotonic()
    try:
        _, errors = process.communicate(timeout=60 + _SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the other worker holds the pipe too
        process.communicate()
        return "spaCy's nlp.pipe waits for ever for a killed worker"
    last = (errors.strip().splitlines() or [""])[-1]
    return f"ended after {time.monotonic() - start:.0f} s with exit code {process.returncode}: {last}"


def _main() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    killed = False
    for n, _ in enumerate(nlp.pipe((f"A doc {k} ." for k in range(100_000)), n_process=2, batch_size=10)):
        if n > 50 and not killed:
            worker = multiprocessing.active_children()[0]
            assert worker.pid is not None
            os.kill(worker.pid, signal.SIGKILL)
            killed = True


if __name__ == "__main__":
    _main()
