"""Runs a command of the package."""

from __future__ import annotations

import shlex
import subprocess
import sys

from spacy_elmo.errors import CommandError

from .messages import Messages


def run_elmo(*arguments: str, output: bool = False) -> str:
    """Run `python -m spacy elmo` with arguments. output: whether its standard output is returned, not shown.

    Raises CommandError if it fails.
    """
    command = ["-m", "spacy", "elmo", *arguments]
    ended = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE if output else None, encoding="utf-8", check=False
    )
    if ended.returncode:
        raise CommandError(Messages.ELMO_FAILED.format(command=shlex.join(["python", *command])))
    return ended.stdout or ""
