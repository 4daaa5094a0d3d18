"""The limits of the process that reads an untrusted file."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

# Memory and computing time that any file may cost, beside what its values need.
MARGIN_BYTES, MARGIN_SECONDS = 2**28, 10
# The values are in memory at most twice, the second time dataset by dataset; then come chunks and checks of values.
_COPIES = 3
# Slow machines decompress and check about 100 MB/s.
_BYTES_A_SECOND = 2**24
# A week. A timer can't wait for centuries, which the largest max_bytes would give.
_MAX_SECONDS = 7 * 24 * 3600


def seconds_for(n_bytes: int) -> int:
    """Return the seconds of computing time that values of `n_bytes` may cost."""
    return min(MARGIN_SECONDS + n_bytes // _BYTES_A_SECOND, _MAX_SECONDS)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when the one that started it ends. Only Linux can do that.

    parent: number of the process that started this one.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def allow(n_bytes: int) -> None:
    """Limit this process to what it uses now, and to what values of this size need. Raises no error.

    Windows has no such limits, and macOS has none on memory.

    n_bytes: size of the values in bytes.
    """
    if sys.platform == "win32":
        return
    import resource

    _limit(resource.RLIMIT_AS, _address_space() + MARGIN_BYTES + _COPIES * n_bytes)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds_for(n_bytes))
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)  # it writes no file


def _limit(kind: int, value: int) -> None:
    import resource

    with contextlib.suppress(OSError, ValueError):  # of systems that do not have this limit
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _address_space() -> int:
    """Return the bytes of this process's address space; an estimate if the system does not tell it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**30
