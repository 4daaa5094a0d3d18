"""Checks and writes the output files of commands."""

import os
from pathlib import Path

from ...errors import CommandError, Errors
from ...formats.atomic import is_output, replacing, writing
from ...pretraining.model.files import folders_of

STANDARD_OUTPUT = Path("-")
_EXPECTED = "the name of a file to write"


def refuse_inputs(output: Path, inputs: list[Path]) -> None:
    """Raise CommandError if an output file is one of the inputs, or exists and is not a regular file."""
    for path in inputs:
        if path.exists() and output.exists() and output.samefile(path):
            raise CommandError(Errors.EMBED_SAME.format(path=output))
    _refuse_special(output)


def refuse_in_model(output: Path, model: str | os.PathLike[str]) -> None:
    """Raise ElmoError if a file to write is in a folder of a biLM or of its run.

    model: a folder, or the name of a biLM.
    """
    for folder in folders_of(model):
        if Path(os.path.realpath(output)).is_relative_to(folder):
            raise CommandError(Errors.MODEL_HOLDS_OUTPUT.format(path=output, folder=folder))


def refuse_stream(output: Path) -> None:
    """Raise CommandError if vectors are to be written to standard output."""
    if output == STANDARD_OUTPUT:
        raise CommandError(Errors.OUTPUT_STREAM)


def refuse_existing(path: Path, force: bool) -> None:
    """Raise CommandError if a file exists and `force` is false, or if it can't be written."""
    _refuse_special(path)
    if path.exists() and not force:
        raise CommandError(Errors.INIT_EXISTS.format(path=path))
    if not path.parent.is_dir():
        raise CommandError(Errors.FOLDER_MISSING.format(path=path, folder=path.parent))


def _refuse_special(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise CommandError(Errors.FILE_NOT_REGULAR.format(path=path, expected=_EXPECTED))
    if is_output(path):
        raise CommandError(Errors.FILE_OUTPUT.format(path=path))


def write_text(text: str, path: Path) -> None:
    """Write a text file in UTF-8, atomically. Raises CommandError if that fails."""
    with replacing(path, CommandError) as temporary, writing(path, CommandError):
        temporary.write_text(text, encoding="utf8")
