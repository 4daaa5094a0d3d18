"""Puts a folder that was made elsewhere in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

from spacy_elmo.errors import CommandError
from spacy_elmo.formats.atomic import writing


def place(made: Path, output: Path) -> None:
    """Copy a folder to its place. An earlier folder there stays until the copy is complete.

    made: the folder; it may be on another disk.
    output: its place. Folders around it are made.

    Raises CommandError if it can't be written.
    """
    copy = output.with_name(f".{output.name}.new")
    with writing(output, CommandError):
        output.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(made, copy)
            shutil.rmtree(output, ignore_errors=True)
            copy.rename(output)
        finally:
            shutil.rmtree(copy, ignore_errors=True)
