"""A parser of arguments that are folders."""

from pathlib import Path

import typer

from ...errors import Errors


def folder_argument(value: str) -> Path:
    """Return the path of a folder, which may be missing. Raises BadParameter if it is a file."""
    path = Path(value)
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(Errors.PATH_FOLDER.format(path=path))
    return path
