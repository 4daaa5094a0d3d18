"""How commands end that can't do what they are asked for."""

from collections.abc import Iterator
from contextlib import contextmanager

from wasabi import msg

from ...errors import ElmoError
from .console import escaped


@contextmanager
def errors_told(stopped: str | None = None) -> Iterator[None]:
    """Print an error of the block in place of a traceback, and exit with 1.

    stopped: what is printed if a signal ends the block; see stopping.py for the exit code.
    """
    try:
        yield
    except (ElmoError, OSError) as error:
        msg.fail(escaped(str(error)), exits=1)
    except KeyboardInterrupt:
        if stopped is not None:
            msg.fail(escaped(stopped))
        raise
