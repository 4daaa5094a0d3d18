"""Warnings of this package as a line on standard error, without the line of code that Python names."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from ... import errors
from ...errors import TruncatedWordsWarning
from .console import escaped
from .printer import msg

_PACKAGE = Path(errors.__file__).parents[1]


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the package's own warnings of the block as commands print theirs. All others are shown as before."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, *place: Any, **named: Any) -> None:
        of_package = category is UserWarning and Path(filename).is_relative_to(_PACKAGE)
        if not of_package and category.__module__ != errors.__name__:
            before(message, category, filename, *place, **named)
        elif sys.stderr is not None:
            told = message.message if isinstance(message, TruncatedWordsWarning) else str(message)
            # as Python's own showwarning: a warning that can't be written does not end the command
            with suppress(OSError, ValueError), redirect_stdout(sys.stderr):
                msg.warn(escaped(told))

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
