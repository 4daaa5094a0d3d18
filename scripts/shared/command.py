"""How a script becomes a command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from spacy_elmo.errors import ElmoError


def run_command(function: Callable[..., None], **settings: Any) -> None:
    """Run a function on the command line's arguments. For the project's own errors only the message is printed.

    settings: of Click's context.
    """
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(context_settings=settings)(function)
    try:
        app()
    except ElmoError as error:
        sys.exit(f"✘ {error}")
