"""Signals that end a command."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does: by a KeyboardInterrupt, so that nothing is left behind.

    Its argument is the signal's number; see exit_code.
    """
    before = {number: signal.signal(number, _interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """What a command ends with that was stopped so: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
    return 128 + int(interrupt.args[0] if interrupt.args else signal.SIGINT)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
