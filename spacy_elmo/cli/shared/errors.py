"""Ends commands that fail, with a message on standard error instead of a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from ...errors import ElmoError
from .console import escaped, is_of_output
from .printer import msg


def print_error(message: str, exits: int | None = None) -> None:
    """Print the message of an error to standard error, since a program may read standard output.

    message: what is wrong.
    exits: exit code; None: the program goes on.
    """
    with redirect_stdout(sys.stderr):
        msg.fail(escaped(message), spaced=exits is not None)
    if exits is not None:
        sys.exit(exits)


@contextmanager
def printing_errors(stopped: str | None = None) -> Iterator[None]:
    """Print an ElmoError or OSError of the block, and exit with code 1. An OSError of standard output is raised again.

    stopped: message if a signal ends the block; None: nothing is printed. stopping.py sets the exit code.
    """
    try:
        yield
    except (ElmoError, OSError) as error:
        if is_of_output(error):
            raise  # the group of commands ends the command
        print_error(str(error), exits=1)
    except KeyboardInterrupt:
        if stopped is not None:
            print_error(stopped)
        raise
