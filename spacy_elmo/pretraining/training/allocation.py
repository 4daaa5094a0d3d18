"""Memory: what training frees is kept for the next step, and an error tells where there is not enough."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ...errors import Errors, SettingsError
from ..settings.sections import TrainingSettings

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


@contextmanager
def enough_memory(training: TrainingSettings) -> Iterator[None]:
    """Turn what numpy and torch raise where they get no memory into SettingsError, with the settings to change."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # on a CPU torch has no class of its own for it
        if not isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) and "DefaultCPUAllocator" not in str(error):
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        message = Errors.MEMORY.format(reason=reason, streams=training.streams, steps=training.steps)
        raise SettingsError(message) from error
