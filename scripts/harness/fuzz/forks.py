"""Work that may crash or hang without harm to this process: libhdf5 does so on some of what it is told to write."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

_SECONDS = 10


def in_fork(work: Callable[[], None]) -> None:
    """Do some work in a fork of this process, and wait for it. Prints how it ended if a signal ended it.

    work: raises nothing.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(_SECONDS)
            work()
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        print(f"what writes an input was ended by {signal.Signals(-code).name}", file=sys.stderr, flush=True)
