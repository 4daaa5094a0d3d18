"""Parsers of path arguments."""

from pathlib import Path

import typer

from ...errors import Errors


def path_argument(value: str) -> Path:
    """Return the path of an argument. Raises BadParameter if it is empty, since Path("") is the current folder."""
    if not str(value):
        raise typer.BadParameter(Errors.PATH_EMPTY)
    return Path(value)


def folder_argument(value: str) -> Path:
    """Return the path of a folder, which may be missing. Raises BadParameter if it is empty or a file."""
    path = path_argument(value)
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(Errors.PATH_FOLDER.format(path=path))
    return path
