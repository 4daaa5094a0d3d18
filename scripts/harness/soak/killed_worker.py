"""A worker that is killed in the middle: of spaCy's own nlp.pipe, and of the program in docs/reliability.md."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import spacy

_SECONDS = 90.0
_PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
_NLP_PIPE = """
import spacy
nlp = spacy.load("saved")
for doc in nlp.pipe((f"Bank number {k} ." for k in range(100_000)), n_process=2, batch_size=10):
    print(doc._.elmo.shape, flush=True)
"""


def killed_workers() -> str:
    """Kill a worker of each program, and tell how they ended. Raises AssertionError if that of the page did not."""
    return f"spaCy's nlp.pipe {killed_worker(_NLP_PIPE)}; the program in docs/reliability.md {killed_worker(program())}"


def program() -> str:
    """Return the program of the page, with more texts, so that it does not end by itself."""
    [found] = re.findall(r"```python\n(.*?)```", _PAGE.read_text(encoding="utf8"), re.DOTALL)
    assert "range(1000)" in found
    return str(found).replace("range(1000)", "range(100_000)")


def killed_worker(source: str, seconds: float = _SECONDS) -> str:
    """Run a program in a folder with a saved pipeline, and kill one of its processes when it has printed a line.

    source: the program. It starts processes, and prints lines.
    seconds: how long to wait for its end.

    Returns what it did.
    """
    with tempfile.TemporaryDirectory() as folder:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        nlp.to_disk(Path(folder, "saved"))
        Path(folder, "program.py").write_text(source, encoding="utf8")
        with Path(folder, "errors").open("w+", encoding="utf8") as errors:
            process = subprocess.Popen(
                [sys.executable, "program.py"],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                text=True,
            )
            assert process.stdout is not None
            try:
                assert process.stdout.readline(), "it printed nothing"
                os.kill(_children(process.pid)[0], signal.SIGKILL)
                start = time.monotonic()
                process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                return f"still waited {seconds:.0f} s after a worker was killed"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its other workers too
                process.communicate()
            errors.seek(0)
            last = (errors.read().strip().splitlines() or [""])[-1]
    return (
        f"ended {time.monotonic() - start:.1f} s after a worker was killed, with exit code {process.returncode}: {last}"
    )


def _children(process: int) -> list[int]:
    """Return the numbers of the processes that a process has started."""
    files = Path(f"/proc/{process}/task").glob("*/children")
    return sorted(int(number) for file in files for number in file.read_text().split())
