"""Ends commands that fail, with a message instead of a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

from wasabi import msg

from ...errors import ElmoError
from .console import escaped


@contextmanager
def printing_errors(stopped: str | None = None) -> Iterator[None]:
    """Print an ElmoError or OSError of the block, and exit with code 1.

    stopped: message if a signal ends the block; None: nothing is printed. stopping.py sets the exit code.
    """
    try:
        yield
    except (ElmoError, OSError) as error:
        msg.fail(escaped(str(error)), exits=1)
    except KeyboardInterrupt:
        if stopped is not None:
            msg.fail(escaped(stopped))
        raise
