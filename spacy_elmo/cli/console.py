"""Standard output that can't encode some characters, or that is closed."""

import _thread
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
from ..formats import vectors as deferred_errors

_LOST = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def show_all() -> None:
    """Make standard output print characters that it can't encode as escapes like \\udce9, instead of an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def escaped(text: str) -> str:
    """Return a text with escapes for characters that wasabi can't print, and for those that control a terminal.

    wasabi prints UTF-8 or ASCII only, and question marks for the rest. With any other encoding all characters outside
    ASCII are escaped. New lines stay.
    """
    encoding = "ascii" if NO_UTF8 else "utf8"
    printable = "".join(c if category(c) != "Cc" or c == "\n" else ascii(c)[1:-1] for c in text)
    return printable.encode(encoding, "backslashreplace").decode(encoding)


def print_utf8(text: str) -> None:
    """Print a text in UTF-8, as it would be in a file, whatever the encoding of standard output."""
    if hasattr(sys.stdout, "buffer"):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
    else:  # a program has put a StringIO there
        sys.stdout.write(text)


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII if standard output is not UTF-8, as in a pipe on Windows."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    print(json.dumps(value, indent=2, ensure_ascii=not encoding.lower().startswith("utf")))


def quoted(path: Path) -> str:
    """Return a path as a command that is shown must have it: in quotes if it has blanks or other special signs."""
    if os.name == "nt":
        return subprocess.list2cmdline([str(path)])
    return shlex.quote(str(path))


def is_of_output(error: BaseException) -> bool:
    """Whether an error says that standard output can't be written: its disk is full, or its reader has ended.

    Errors of other files are ElmoErrors, or name the file.
    """
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


class TerminalPrinter(Printer):
    """wasabi's printer, without colours in files and pipes, or if NO_COLOR is set (https://no-color.org)."""

    def __init__(self, *, no_print: bool = False) -> None:
        """no_print: whether messages are returned, and not printed."""
        super().__init__(no_print=no_print)
        self._colours = self.show_color  # false in terminals that know none, or if wasabi's variables say so

    def text(self, *args: Any, **kwargs: Any) -> Any:
        """Print a message; all others call this. See wasabi for the parameters."""
        self.show_color = self._in_colours()
        return super().text(*args, **kwargs)

    def divider(self, text: str = "", *args: Any, **kwargs: Any) -> Any:
        """Print a heading, which wasabi always makes bold. See wasabi for the parameters."""
        if self._in_colours():
            return super().divider(text, *args, **kwargs)
        heading = f"\n{f' {text} ':=^{self.line_max}}"
        return heading if self.no_print else print(heading)

    def _in_colours(self) -> bool:
        try:
            terminal = sys.stdout.isatty()
        except (AttributeError, ValueError):  # it is closed, or a program's own object
            return False
        return self._colours and terminal and not os.environ.get("NO_COLOR")


msg = TerminalPrinter()


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


class Commands(TyperGroup):
    """The group of all commands.

    It refuses empty arguments, and those with a NUL character, which no path can have. An empty path is the current
    folder for Python, and an empty name or language would be taken for one that was left out. Only a setting of a
    config may be empty, such as `--paths.init ""`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that are left for the command. Raises BadParameter if one is refused.

        ctx: of the group.
        args: the name of the command, and its arguments.
        """
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
        """Run a command. If standard output can't be written, exit with code 1 and say why on standard error.

        Nothing is said if the program that reads it has ended, as `head` does. The package's warnings are printed as
        plain lines.

        ctx: of the group.
        """
        with _output(), plain_warnings():
            return super().invoke(ctx)


@contextmanager
def _output() -> Iterator[None]:
    """End the command if standard output can't be written in the block, or what is left of it at the end."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # None: it was closed from the beginning
                sys.stdout.flush()
    except OSError as error:
        if not is_of_output(error):
            raise
        give_up()
        if error.errno != errno.EPIPE:
            print_error(
                f"standard output can't be written ({error.strerror}). Free some space, or send the output to "
                "another place."
            )
        raise typer.Exit(1) from error


def _refuse_empty(before: str) -> None:
    """Raise BadParameter for an empty argument, unless it is the value of a config's setting.

    before: the argument before it, perhaps an option.
    """
    if not before.startswith("-"):
        raise typer.BadParameter("an empty argument. Expected a name or a text; a dot means the current folder.")
    if not (before.startswith("--") and "." in before and "=" not in before):
        raise typer.BadParameter(
            f"{before} is followed by an empty argument. Expected a value; leave the option out for its default."
        )


Parameters = ParamSpec("Parameters")
NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
AGAIN = 0.05  # seconds after which a signal that came in a callback is raised again


@contextmanager
def stoppable() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block with a KeyboardInterrupt, as Ctrl-C does, so that files are cleaned up.

    The argument of the exception is the number of the signal (see `exit_code`). A signal that is ignored stays ignored,
    such as SIGHUP under nohup. One that comes in a callback, where exceptions are dropped, is raised again after it.
    If a library raises a KeyboardInterrupt of its own for the signal, as Ray does, that one gets the number. Outside
    the main thread, which alone gets signals, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    noted = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        noted.append(signal.SIGINT)
    came: list[int] = []
    timers: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_filename == deferred_errors.__file__:  # HDF5 would print a traceback
            timers.append(threading.Timer(AGAIN, _send_to_main_thread, [number]))
            timers[-1].start()
            return
        came.append(number)
        raise KeyboardInterrupt(number)

    before = {number: signal.signal(number, interrupt) for number in noted}
    try:
        with _nothing_lost():
            yield
    except KeyboardInterrupt as error:
        if came and not error.args:
            error.args = (came[0],)
        raise
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            # None: the handler was not set from Python, and can't be set again
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of a stopped command: 130 after SIGINT (Ctrl-C), 143 after SIGTERM, 129 after SIGHUP.

    Shells report these codes for programs that a signal ended: 128 and the number of the signal.

    interrupt: what ended the command.
    """
    number = interrupt.args[0] if interrupt.args else None
    return 128 + (number if isinstance(number, int) else signal.SIGINT)  # one that Python raised has no argument


def with_exit_codes(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Return a command that runs in `stoppable`, and turns a KeyboardInterrupt into its exit code."""

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with stoppable():
                command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(exit_code(interrupt)) from None

    return run


@contextmanager
def _nothing_lost() -> Iterator[None]:
    """Raise a KeyboardInterrupt again that came in a weak reference's callback or a `__del__`."""
    report = sys.unraisablehook
    timers: list[threading.Timer] = []

    def raise_again(lost: "sys.UnraisableHookArgs") -> None:
        if not isinstance(lost.exc_value, KeyboardInterrupt):
            report(lost)
            return
        number = exit_code(lost.exc_value) - 128
        timers.append(threading.Timer(AGAIN, _send_to_main_thread, [number]))  # in this hook it would be lost too
        timers[-1].start()

    sys.unraisablehook = raise_again
    try:
        yield
    finally:
        sys.unraisablehook = report
        for timer in timers:
            timer.cancel()


def _send_to_main_thread(number: int) -> None:
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)  # ends a wait too
    else:
        _thread.interrupt_main(signal.Signals(number))
