"""What all commands do: they check their arguments, and end if standard output can't be written."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from ...errors import Errors, shown
from .console import give_up, is_of_output
from .errors import print_error
from .plain_warnings import plain_warnings


class Commands(TyperGroup):
    """The group of all commands.

    It refuses empty arguments, and those with a NUL character, which no path can have. An empty path is the current
    folder for Python, and an empty name or language would be taken for one that was left out. Only a setting of a
    config may be empty, such as `--paths.init ""`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left for the command. Raises BadParameter if one is refused.

        ctx: of the group.
        args: the name of the command, and its arguments.
        """
        for before, arg in pairwise(["", *args]):
            option, equals, value = arg.partition("=") if arg.startswith("--") else (before, "=", arg)
            if equals and not value:
                _refuse_empty(option)
            if "\0" in arg:
                raise typer.BadParameter(Errors.FILE_NUL.format(path=shown(arg)))
        with _output():  # help is printed here
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command. If standard output can't be written, exit with code 1 and say why on standard error.

        Nothing is said if the program that reads it has ended, as `head` does. The package's warnings are printed as
        plain lines.

        ctx: of the group.
        """
        with _output(), plain_warnings():
            return super().invoke(ctx)


@contextmanager
def _output() -> Iterator[None]:
    """End the command if standard output can't be written in the block, or what is left of it at the end."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None: it was closed from the beginning
                sys.stdout.flush()
    except OSError as error:
        if not is_of_output(error):
            raise
        give_up()
        if error.errno != errno.EPIPE:
            print_error(Errors.OUTPUT_LOST.format(reason=error.strerror))
        raise typer.Exit(1) from error


def _refuse_empty(before: str) -> None:
    """Raise BadParameter for an empty argument, unless it is the value of a config's setting.

    before: the argument before it, perhaps an option.
    """
    if not before.startswith("-"):
        raise typer.BadParameter(Errors.ARGUMENT_EMPTY)
    if not (before.startswith("--") and "." in before and "=" not in before):
        raise typer.BadParameter(Errors.OPTION_EMPTY.format(option=before))
