"""spaCy's commands in this process."""

import re
from functools import cache

import spacy
import typer.testing
from spacy.cli._util import app
from typer.testing import CliRunner, Result

spacy.registry.cli.get_all()  # as `python -m spacy` does: our commands come in by the entry point
typer.testing._get_command = cache(typer.testing._get_command)  # it makes all of spaCy's commands, each time


def invoke(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> Result:
    """A command's result, its exit code checked: through spaCy's own app, without a process of its own."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, f"{result.output}{result.exception!r}"
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    if arguments[0] == "elmo":  # the output is no terminal
        assert not re.search(r"[\x1b\r]", result.output), f"a log would have codes: {result.output!r}"
    return result


def run(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> str:
    """What a command prints, with one blank between words, since messages are wrapped."""
    return " ".join(invoke(*arguments, code=code, stdin=stdin).output.split())
