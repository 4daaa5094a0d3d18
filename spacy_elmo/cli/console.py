"""How commands print, fail and stop: messages, warnings, exit codes, and a standard output that is lost."""

import errno
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import wraps
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec
from unicodedata import category

import typer
from typer.core import TyperGroup
from wasabi.printer import Printer
from wasabi.util import NO_UTF8

from .. import errors
from ..errors import ElmoError, TruncatedWordsWarning, shown
from ..formats.vectors import DeferredErrorFile

Parameters = ParamSpec("Parameters")
_LOST = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of standard output
_PACKAGE = Path(errors.__file__).parent


def escaped(text: object) -> str:
    """Return a text with escapes for characters that wasabi can't print, and for those that control a terminal.

    wasabi prints UTF-8 or ASCII only. With any other encoding all characters outside ASCII are escaped.
    """
    encoding = "ascii" if NO_UTF8 else "utf8"
    printable = "".join(c if category(c) != "Cc" or c == "\n" else ascii(c)[1:-1] for c in str(text))
    return printable.encode(encoding, "backslashreplace").decode(encoding)


class TerminalPrinter(Printer):
    """wasabi's printer, which escapes what it prints, and has colours on terminals only (https://no-color.org)."""

    def __init__(self, *, no_print: bool = False) -> None:
        super().__init__(no_print=no_print)
        self._colours = self.show_color  # false in terminals that know none, or if wasabi's variables say so

    def text(self, title: Any = "", text: Any = "", *args: Any, **kwargs: Any) -> Any:
        """Print a message; all others call this."""
        self.show_color = self._in_colours()
        return super().text(escaped(title), escaped(text), *args, **kwargs)

    def table(self, data: Any, **kwargs: Any) -> Any:
        """Print a table of rows."""
        return super().table([[escaped(cell) for cell in row] for row in data], **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        """Print a heading, which wasabi makes bold even in files."""
        if self._in_colours():
            return super().divider(escaped(text), *args, **kwargs)
        print(f"\n{f' {escaped(text)} ':=^{self.line_max}}")

    def _in_colours(self) -> bool:
        try:
            return self._colours and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        except (AttributeError, ValueError):  # it is closed, or a program's own object
            return False


msg = TerminalPrinter()


def print_error(message: str) -> None:
    """Print the message of an error to standard error, since a program may read standard output."""
    with redirect_stdout(sys.stderr):
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
        with suppress(OSError, ValueError), redirect_stdout(sys.stderr):
            msg.warn(message.message if isinstance(message, TruncatedWordsWarning) else message)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


class Commands(TyperGroup):
    """The group of all commands.

    It refuses empty arguments, and those with a NUL character, which no path can have. An empty path is the current
    folder for Python, and an empty name or language would be taken for one that was left out. Only a setting of a
    config may be empty, such as `--paths.init ""`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left for the command. Raises BadParameter if one is refused."""
        for before, arg in pairwise(["", *args]):
            option, equals, value = arg.partition("=") if arg.startswith("--") else (before, "=", arg)
            if equals and not value:
                _refuse_empty(option)
            if "\0" in arg:
                raise typer.BadParameter(
                    f"{shown(arg)} has a NUL character, which no path can have. Remove the character."
                )
        with _output():  # help is printed here
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        if isinstance(sys.stdout, io.TextIOWrapper):  # what it can't encode is printed as \\udce9, not an error
            sys.stdout.reconfigure(errors="backslashreplace")
        with _output(), plain_warnings():
            return super().invoke(ctx)


def _refuse_empty(before: str) -> None:
    """Raise BadParameter for an empty argument, unless the one before it is a config's setting."""
    if not before.startswith("-"):
        raise typer.BadParameter("an empty argument. Expected a name or a text; a dot means the current folder.")
    if not (before.startswith("--") and "." in before and "=" not in before):
        raise typer.BadParameter(
            f"{before} is followed by an empty argument. Expected a value; leave the option out for its default."
        )


@contextmanager
def _output() -> Iterator[None]:
    """Exit with 1 if standard output can't be written. The reason is told unless its reader ended, as `head` does."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None: it was closed from the beginning
                sys.stdout.flush()
    except OSError as error:
        if not _is_of_output(error):
            raise
        give_up()
        if error.errno != errno.EPIPE:
            print_error(
                f"standard output can't be written ({error.strerror}). Free some space, or send the output to "
                "another place."
            )
        raise typer.Exit(1) from error


def _is_of_output(error: BaseException) -> bool:
    """Whether an error is of standard output. Errors of other files are ElmoErrors, or name the file."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _LOST


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


def with_exit_codes(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Return a command that exits with 1 after an error, and as shells report it if a signal ends it.

    That is 128 and the number of the signal: 130 after SIGINT (Ctrl-C), 143 after SIGTERM, 129 after SIGHUP.
    """

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with stoppable():
                command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            number = interrupt.args[0] if interrupt.args else signal.SIGINT
            raise typer.Exit(128 + number) from None
        except (ElmoError, OSError) as error:
            if _is_of_output(error):
                raise  # the group of commands ends the command
            print_error(str(error))
            raise typer.Exit(1) from error

    return run


@contextmanager
def stoppable() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block with a KeyboardInterrupt, as Ctrl-C does, so that files are cleaned up.

    Its argument is the number of the signal, also if a library raises another exception in its place. A signal that is
    ignored stays ignored, such as SIGHUP under nohup. Outside the main thread, which alone gets signals, nothing is
    changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        file = None if frame is None else frame.f_locals.get("self")
        if isinstance(file, DeferredErrorFile):  # HDF5, which called it, would print an exception and go on
            file.error = KeyboardInterrupt(number)
        else:
            raise KeyboardInterrupt(number)

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, interrupt) for number in numbers if _is_heard(number)}
    try:
        yield
    except BaseException as error:
        if came and not (isinstance(error, KeyboardInterrupt) and error.args):  # a library made another one of it
            raise KeyboardInterrupt(came[0]) from error
        raise
    finally:
        for number, handler in before.items():
            # None: the handler was not set from Python, and can't be set again
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _is_heard(number: int) -> bool:
    handler = signal.getsignal(number)
    return handler is signal.default_int_handler if number == signal.SIGINT else handler != signal.SIG_IGN
