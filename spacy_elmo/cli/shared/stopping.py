"""Signals that end a command, and the exit codes that tell of them."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import ParamSpec

import typer

Parameters = ParamSpec("Parameters")
NAMES = ("SIGTERM", "SIGHUP")  # SIGINT raises KeyboardInterrupt without help; Windows has no SIGHUP


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does: by a KeyboardInterrupt, so that nothing is left behind.

    The exception's argument is the signal's number; see exit_code. A signal that is ignored stays ignored, as SIGHUP
    under nohup. Outside the main thread, the only one that signals reach, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    noted = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, _interrupt) for number in noted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """What a command that was stopped exits with: 130 after SIGINT (Ctrl-C), 143 after SIGTERM, 129 after SIGHUP.

    These are the codes that shells give for programs that such a signal ended: 128 and the signal's number.
    """
    number = interrupt.args[0] if interrupt.args else None
    return 128 + (number if isinstance(number, int) else signal.SIGINT)  # Python's own has no argument


def with_exit_codes(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """The command with `stoppable` around it; a KeyboardInterrupt that leaves it becomes its exit code."""

    @wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with stoppable():
                command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            raise typer.Exit(exit_code(interrupt)) from None

    return run


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
