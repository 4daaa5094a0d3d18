"""Checks of arguments: that none has a NUL character, and parsers of paths."""

from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from ...errors import Errors, shown


class Arguments(TyperGroup):
    """The group of all commands, which refuses an argument with a NUL character, because no path can have one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left for the command. Raises BadParameter if one has a NUL character.

        ctx: of the group.
        args: the name of the command, and its arguments.
        """
        for arg in args:
            if "\0" in arg:
                raise typer.BadParameter(Errors.FILE_NUL.format(path=shown(arg)))
        return super().parse_args(ctx, args)


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
