"""Signals that end a command, and its exit codes after them."""

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import ParamSpec

import typer

from ...formats import deferred_errors

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
