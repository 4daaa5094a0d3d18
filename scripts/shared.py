"""What several scripts need: how a script becomes a command, reading corpora, commit and machine."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import typer

from spacy_elmo.errors import CommandError, CorpusError, ElmoError

TAGGED = ("corpus/tagger/en_ewt-ud-train.spacy", "corpus/tagger/en_ewt-ud-dev.spacy")  # for training and for scoring
_CODE = ("spacy_elmo", "scripts", "configs")  # results/ and the pages change while the runs are made


def run_command(*functions: Callable[..., None]) -> None:
    """Run a function, or that of several which is named first, on the command line's arguments.

    For the project's own errors only the message is printed.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    for function in functions:
        app.command()(function)
    try:
        app()
    except ElmoError as error:
        sys.exit(f"✘ {error}")


def run_elmo(*arguments: str, output: bool = False) -> str:
    """Run `python -m spacy elmo` with arguments. output: whether its standard output is returned, not shown."""
    command = ["-m", "spacy", "elmo", *arguments]
    ended = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE if output else None, encoding="utf-8", check=False
    )
    if ended.returncode:
        raise CommandError(f"this command failed, what it said stands above: {shlex.join(['python', *command])}")
    return ended.stdout or ""


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file. Only a line feed ends a line, because tokens may contain other separators."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: can't be read ({error}). Expected a corpus in UTF-8.") from error
    return [line.removesuffix("\r") for line in text.split("\n")]


def origin() -> dict[str, str]:
    """Return where a record comes from.

    commit: with "-dirty" if code or configs were changed; "" if git does not know it. machine: the processor's name and
    its number of cores.
    """

    def git(*arguments: str) -> str:
        result = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
        return result.stdout.strip() if result.returncode == 0 else ""

    commit = git("rev-parse", "--short", "HEAD")
    if git("status", "--porcelain", "--untracked-files=no", "--", *_CODE):
        commit += "-dirty"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    machine = names[0] if names else platform.processor() or platform.machine()
    return {"commit": commit, "machine": f"{machine}, {os.cpu_count()} cores"}
