"""Signals that ask a run to write a checkpoint and leave."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
# a signal may come twice for one request: timeout(1) sends it to the process and to its group
REPEATED_SECONDS = 1.0


@dataclass
class Stop:
    """number: of the first signal that came; None before."""

    number: int | None = None


@contextmanager
def asked_to_stop() -> Iterator[Stop]:
    """Note SIGINT, SIGTERM and SIGHUP instead of ending the process; a second one raises KeyboardInterrupt at once.

    SIGHUP, of a terminal that is closed, stays ignored where it is, as under nohup.
    A signal in the second after the first is taken for the same request. Outside the main thread, which signals reach
    alone, nothing is changed. The handlers of before are put back at the end.
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
        elif time.monotonic() - first > REPEATED_SECONDS:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, ask) for number in _noted()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # None stands for a handler that was not set from Python: it can't be put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _noted() -> list[signal.Signals]:
    if HANGUP is None or signal.getsignal(HANGUP) == signal.SIG_IGN:
        return [*SIGNALS]
    return [*SIGNALS, HANGUP]
