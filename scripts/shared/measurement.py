"""What a result has beside its figures: command, commit, machine and minutes; and how such a record is written."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import replacing, writing

_CODE = ("spacy_elmo", "scripts", "configs")  # results/ and the pages change while the runs are made


class Measurement:
    """Commit and machine, as they are when a measurement begins, and the time since then."""

    def __init__(self) -> None:
        self._facts = {"commit": commit_of(Path()), "machine": machine()}
        self._begin = time.perf_counter()

    def write(self, path: Path, command: str, result: Any, **more: str) -> None:
        """Write a result to a file.

        command: that gave it, as a user types it.
        result: that can be JSON.
        more: facts that stand beside it.
        """
        minutes = round((time.perf_counter() - self._begin) / 60, 1)
        write_record(path, {"command": command, **self._facts, **more, "minutes": minutes, "result": result})
        print(f"{path}: written")


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record as JSON, whole or not at all, and the folder around it. Raises CommandError if it can't."""
    with writing(path, CommandError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def commit_of(project: Path) -> str:
    """Return the commit that a folder is at, with "-dirty" if code or configs were changed; "" if git does not know."""
    commit = _git(project, "rev-parse", "--short", "HEAD")
    changed = _git(project, "status", "--porcelain", "--untracked-files=no", "--", *_CODE)
    return f"{commit}-dirty" if changed else commit


def machine() -> str:
    """Return the processor's name and its number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _git(project: Path, *arguments: str) -> str:
    command = ["git", "-C", str(project), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""
