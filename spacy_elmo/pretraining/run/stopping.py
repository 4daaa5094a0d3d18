"""Signals that ask a run to write a checkpoint and end."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
# One request may send a signal twice: timeout(1) sends it to the process and to its group.
REPEATED_SECONDS = 1.0


class Stopped(BaseException):
    """Raised by the first signal in a block that it may interrupt. No `except Exception` catches it."""


@dataclass
class Stop:
    """Whether the run was asked to stop.

    number: of the first signal; None if there was none.
    raises: whether the first signal raises Stopped; see `at_once`.
    """

    number: int | None = None
    raises: bool = False

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let the first signal raise Stopped inside a `with` block, which must not write anything.

        Raises Stopped before the block if there was a signal.
        """
        self.raises = True
        try:
            if self.number is not None:
                raise Stopped
            yield
        finally:
            self.raises = False


@contextmanager
def asked_to_stop() -> Iterator[Stop]:
    """Record SIGINT, SIGTERM and SIGHUP during a `with` block instead of ending the process.

    A second signal raises KeyboardInterrupt, unless it comes within a second, as it then belongs to the same request.
    SIGHUP, which a closed terminal sends, stays ignored if it was, as under nohup. The earlier handlers are set again
    at the end. Outside the main thread, which alone gets signals, nothing is changed.

    Yields the object that records the first signal.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    first = 0.0

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if stop.number is None:
            stop.number, first = number, time.monotonic()
            if stop.raises:
                raise Stopped
        elif time.monotonic() - first > REPEATED_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in _noted()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # None: the handler was not set from Python, and can't be set again
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _noted() -> list[signal.Signals]:
    if HANGUP is None or signal.getsignal(HANGUP) == signal.SIG_IGN:
        return [*SIGNALS]
    return [*SIGNALS, HANGUP]
