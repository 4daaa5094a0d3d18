"""How commands print, fail and stop: messages, warnings and exit codes."""

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from contextvars import ContextVar
from functools import wraps
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TextIO, cast
from unicodedata import category

import typer
from typer.core import TyperGroup
from wasabi.printer import Printer
from wasabi.util import NO_UTF8

from .. import errors, kernels
from ..errors import ElmoError
from ..formats.paths import expanded
from ..formats.vectors import DeferredErrorFile

Parameters = ParamSpec("Parameters")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)
WIDEST = 120  # characters of a column
_PACKAGE = Path(errors.__file__).parent


def escaped(text: object) -> str:
    """Return a text with escapes for what controls a terminal, and for what wasabi can't print."""
    encoding = "ascii" if NO_UTF8 else "utf8"
    printable = "".join(c if category(c) != "Cc" or c == "\n" else ascii(c)[1:-1] for c in str(text))
    return printable.encode(encoding, "backslashreplace").decode(encoding)


class TerminalPrinter(Printer):
    """wasabi's printer, which escapes what it prints, and has colours on terminals only (https://no-color.org)."""

    def text(self, title: Any = "", text: Any = "", *args: Any, **kwargs: Any) -> Any:
        """Print a message; all others call this."""
        self.show_color = _in_colours()
        return super().text(escaped(title), escaped(text), *args, **kwargs)

    def table(self, data: Any, *, header: Any = None, aligns: str = "", **kwargs: Any) -> Any:
        """Print a table. aligns: a letter for each column: l, r or c; none: all are aligned to the left."""
        rows = [[escaped(cell) for cell in row] for row in data]
        kwargs = {"max_col": WIDEST, "divider": header is not None} | kwargs
        return super().table(rows, header=header, aligns=list(aligns) or None, **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        """Print a heading, which wasabi makes bold even in files."""
        if _in_colours():
            return super().divider(escaped(text), *args, **kwargs)
        print(f"\n{f' {escaped(text)} ':=^{self.line_max}}")


_COLOURS = Printer().show_color  # false in terminals that know none, or if wasabi's variables say so


def _in_colours() -> bool:
    with suppress(AttributeError, ValueError):  # it is closed, or a program's own object
        return _COLOURS and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return False


msg = TerminalPrinter()


class _Plain:
    """Standard output that is no terminal, without the codes with which spaCy's own messages have colours there."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(re.sub(r"\x1b\[[\d;]*m", "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def to_stderr(redirected: bool = True) -> AbstractContextManager[Any]:
    """Return a context that prints to standard error, since a program may read standard output."""
    return redirect_stdout(sys.stderr) if redirected else nullcontext()


def print_error(message: object) -> None:
    """Print the message of an error to standard error."""
    with to_stderr():
        msg.fail(message, spaced=True)


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII if standard output is not UTF-8, as in a pipe on Windows."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    print(json.dumps(value, indent=2, ensure_ascii=not encoding.lower().startswith("utf")))


def quoted(path: Path) -> str:
    """Return a path as a command that is shown must have it."""
    return subprocess.list2cmdline([str(path)]) if os.name == "nt" else shlex.quote(str(path))


@contextmanager
def telling_if_stopped(message: str) -> Iterator[None]:
    """Print a message if a signal ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        print_error(message)
        raise


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the package's own warnings of the block as commands print theirs. All others are shown as before."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], filename: str, *place: Any, **named: Any) -> None:
        of_package = category is UserWarning and Path(filename).is_relative_to(_PACKAGE)
        if not of_package and category.__module__ != errors.__name__:
            before(message, category, filename, *place, **named)
            return
        # as Python's own showwarning: a warning that can't be written does not end the command
        with suppress(OSError, ValueError), to_stderr():
            msg.warn(getattr(message, "message", message))  # without what only Python code can use

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


class Group(TyperGroup):
    """A group of commands, which refuses empty arguments, such as that of a shell's variable that is not set.

    An empty path would be the current folder, and an empty name one that was left out. Only a setting of a config may
    be empty, such as `--paths.init ""`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for before, arg in pairwise(["", *args]):
            option, equals, value = arg.partition("=") if arg.startswith("--") else (before, "=", arg)
            is_setting = option.startswith("--") and "." in option and "=" not in option
            if equals and not value and not is_setting:
                raise typer.BadParameter(
                    f"an empty argument after {option!r}. Expected a name or a text; a dot means the current folder; "
                    "leave an option out for its default."
                )
        return super().parse_args(ctx, args)


HELD: ContextVar[ExitStack] = ContextVar("HELD")  # what a command holds until it ends
_TEXTS = ("query", "text", "word", "words")  # options whose strings are no paths


def _expanded(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_expanded(name, each) for each in value)
    is_path = type(value) is str and value.startswith("~") and name not in _TEXTS
    return type(value)(expanded(value)) if is_path or isinstance(value, Path) else value


def with_exit_codes(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Return a command that exits with 1 after an error, and as shells report it if a signal ends it.

    That is 128 and the number of the signal: 130 after SIGINT (Ctrl-C), 143 after SIGTERM, 129 after SIGHUP.
    """

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):  # what it can't encode is printed as \\udce9, not an error
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with plain_warnings(), stoppable(), ExitStack() as held:
                HELD.set(held)
                kernels.allows("amx")  # raises if SPACY_ELMO_ISA has an unknown value
                try:
                    if sys.stdout is not None and not _in_colours():
                        held.enter_context(redirect_stdout(cast(TextIO, _Plain(sys.stdout))))
                    command(*args, **{name: _expanded(name, value) for name, value in kwargs.items()})
                finally:
                    if sys.stdout is not None:  # None: it was closed from the beginning
                        sys.stdout.flush()
        except KeyboardInterrupt as interrupt:
            number = interrupt.args[0] if interrupt.args else signal.SIGINT
            raise typer.Exit(128 + number) from None
        except (ElmoError, OSError) as error:
            message = str(error)
            if isinstance(error, OSError) and error.filename is None:  # errors of other files name the file
                if error.errno == errno.EPIPE:
                    raise  # Typer ends the command in silence, since the reader has ended, as `head` does
                if error.errno in _FULL:
                    give_up()
                    message = f"standard output can't be written ({error.strerror}). Free some space."
            print_error(message)
            raise typer.Exit(1) from error

    return run


def give_up() -> None:
    """Redirect a closed standard output to nowhere, so that later writes and its buffer raise no errors."""
    try:
        lost = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or no file
        sys.stdout = io.StringIO()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, lost)
    os.close(nowhere)


@contextmanager
def stoppable() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block with a KeyboardInterrupt, as Ctrl-C does, so that files are cleaned up.

    Its argument is the signal's number, whatever a library raises in its place. Ignored signals stay ignored.
    """
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        file = None if frame is None else frame.f_locals.get("self")
        if isinstance(file, DeferredErrorFile):  # HDF5, which called it, would print an exception and go on
            file.error = KeyboardInterrupt(number)
        else:
            raise KeyboardInterrupt(number)

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers if signal.getsignal(number) in _DEFAULTS}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    except BaseException as error:
        if came:
            raise KeyboardInterrupt(came[0]) from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
