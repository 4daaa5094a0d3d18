"""Memory that is free, given back to the system."""

import ctypes
import sys


def trim() -> None:
    """After large arrays were made on the way to others: glibc keeps what they occupied. Elsewhere nothing is done."""
    if sys.platform == "linux":
        give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if give_back is not None:
            give_back(ctypes.c_size_t(0))
