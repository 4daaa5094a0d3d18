"""Checks of arguments: that none is empty or has a NUL character, and a parser of folders."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from ...errors import Errors, shown


class Arguments(TyperGroup):
    """The group of all commands, which refuses empty arguments, and those with a NUL character.

    No path can have a NUL character. An empty path is the current folder for Python, and an empty name or language
    would be taken for one that was left out. Only a setting of a config may be empty, such as `--paths.init ""`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left for the command. Raises BadParameter if one is refused.

        ctx: of the group.
        args: the name of the command, and its arguments.
        """
        for before, arg in pairwise(["", *args]):
            option, equals, value = arg.partition("=") if arg.startswith("--") else (before, "=", arg)
            if equals and not value and "." not in option:
                raise typer.BadParameter(Errors.ARGUMENT_EMPTY)
            if "\0" in arg:
                raise typer.BadParameter(Errors.FILE_NUL.format(path=shown(arg)))
        return super().parse_args(ctx, args)


def folder_argument(value: str) -> Path:
    """Return the path of a folder, which may be missing. Raises BadParameter if it is a file."""
    path = Path(value)
    if path.exists() and not path.is_dir():
        raise typer.BadParameter(Errors.PATH_FOLDER.format(path=path))
    return path
