"""Memory that training frees is kept for the next step."""

import ctypes
import sys

# of glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST = 32 << 20  # the largest threshold that glibc takes; larger arrays are kept by whoever needs them again
MOST = 2**31 - 1


def keep_memory() -> None:
    """Tell glibc not to hand large arrays back to the system: each step would fault all of its pages in again.

    Measured: a step takes 5 to 10 % less. For a process that does nothing else; elsewhere than on glibc it does
    nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for parameter, value in ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, LARGEST), (M_TRIM_THRESHOLD, MOST)):
        mallopt(parameter, value)
