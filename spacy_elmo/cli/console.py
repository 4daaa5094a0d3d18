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
from contextlib import (
    AbstractContextManager,
    ExitStack,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TextIO, cast
from unicodedata import category

import typer
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
_STOPPED = "stopped. Earlier files stay. compare, embed to a folder and pretrain (without --restart) can go on."
_PACKAGE = Path(errors.__file__).parent


def escaped(text: object) -> str:
    """Return a text with escapes for what controls a terminal, and for what wasabi can't print."""
    encoding = "ascii" if NO_UTF8 else "utf8"
    printable = "".join(c if category(c) != "Cc" or c == "\n" else ascii(c)[1:-1] for c in str(text))
    return printable.encode(encoding, "backslashreplace").decode(encoding)


class TerminalPrinter(Printer):
    """wasabi's printer, which escapes what it prints."""

    def text(self, title: Any = "", text: Any = "", *args: Any, **kwargs: Any) -> Any:
        """Print a message; all others call this."""
        return super().text(escaped(title), escaped(text), *args, **kwargs)

    def table(self, data: Any, *, header: Any = None, aligns: str = "", **kwargs: Any) -> Any:
        """Print a table. aligns: a letter for each column: l, r or c; none: all are aligned to the left."""
        rows = [[escaped(cell) for cell in row] for row in data]
        kwargs = {"max_col": WIDEST, "divider": header is not None} | kwargs
        return super().table(rows, header=header, aligns=list(aligns) or None, **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        """Print a heading."""
        return super().divider(escaped(text), *args, **kwargs)


msg = TerminalPrinter()


class _Plain:
    """A stream without the codes of colours."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(re.sub(r"\x1b\[[\d;]*m", "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def colours_on_terminals() -> Iterator[None]:
    """Have the messages of the block, also spaCy's, in colours on terminals only (https://no-color.org)."""
    with ExitStack() as redirected:
        for redirect, file in ((redirect_stdout, sys.stdout), (redirect_stderr, sys.stderr)):
            # None: it was closed from the beginning
            if file is not None and (os.environ.get("NO_COLOR") or not file.isatty()):
                redirected.enter_context(redirect(cast(TextIO, _Plain(file))))
        yield


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

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


HELD: ContextVar[ExitStack] = ContextVar("HELD")  # what a command holds until it ends


def _expanded(value: Any) -> Any:
    if isinstance(value, list):
        return [_expanded(each) for each in value]
    is_path = isinstance(value, Path) or (isinstance(value, str) and value.startswith(("~/", "~\\")))
    return type(value)(expanded(value)) if is_path else value


def with_exit_codes(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Return a command that exits with 1 after an error, and as shells report it if a signal ends it.

    That is 128 and the number of the signal: 130 after SIGINT (Ctrl-C), 143 after SIGTERM, 129 after SIGHUP.
    """

    @wraps(command)
    @colours_on_terminals()
    @plain_warnings()
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        if hasattr(sys.stdout, "reconfigure"):  # what it can't encode is printed as \\udce9, not an error
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with stoppable(), ExitStack() as held:
                HELD.set(held)
                kernels.allows("amx")  # raises if SPACY_ELMO_ISA has an unknown value
                try:
                    command(*args, **{name: _expanded(value) for name, value in kwargs.items()})
                finally:
                    if sys.stdout is not None:
                        sys.stdout.flush()
        except KeyboardInterrupt as interrupt:
            print_error(_STOPPED)
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
