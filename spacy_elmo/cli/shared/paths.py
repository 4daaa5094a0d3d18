"""Paths as commands are given them."""

from pathlib import Path

import typer

from ...errors import Errors


def given_path(value: str) -> Path:
    """The path of an argument. Raises BadParameter for an empty one, which would stand for the folder one is in."""
    if not str(value):
        raise typer.BadParameter(Errors.PATH_EMPTY)
    return Path(value)


def given_folder(value: str) -> Path:
    """The path of a folder that may be missing. Raises BadParameter for an empty one, and where a file is there."""
    path = given_path(value)
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(Errors.PATH_FOLDER.format(path=path))
    return path
