"""How a script becomes a command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

import typer

from spacy_elmo.errors import ElmoError


def run_command(function: Callable[..., None], **settings: Any) -> None:
    """Run a function on the command line's arguments. For the project's own errors only the message is printed.

    SIGTERM ends it as an exception does, so that a process that it waits for ends too, and temporary folders go.

    settings: of Click's context.
    """
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(context_settings=settings)(function)
    try:
        app()
    except ElmoError as error:
        sys.exit(f"✘ {error}")
    finally:
        signal.signal(signal.SIGTERM, before)
