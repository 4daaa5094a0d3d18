"""Memory of a training process: settings of the allocator, and an error if there is not enough memory."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ...errors import Errors, SettingsError
from ..settings.sections import TrainingSettings

# numbers of the parameters in glibc's malloc.h
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
LARGEST_MMAP_THRESHOLD = 32 << 20  # bytes; glibc accepts no more. Code that needs larger arrays must reuse them itself
LARGEST_TRIM_THRESHOLD = 2**31 - 1


def reuse_memory() -> None:
    """Tell glibc not to return freed memory to the system, and to use one arena for all threads.

    Otherwise each update would have page faults for all its large arrays: an update needs 5 to 10 % less time this way
    (measured). It is meant for a process that only trains. Without glibc it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    for parameter, value in (
        (M_ARENA_MAX, 1),
        (M_MMAP_THRESHOLD, LARGEST_MMAP_THRESHOLD),
        (M_TRIM_THRESHOLD, LARGEST_TRIM_THRESHOLD),
    ):
        mallopt(parameter, value)


@contextmanager
def enough_memory(training: TrainingSettings) -> Iterator[None]:
    """Turn errors of numpy and torch about missing memory into SettingsError, which names the settings to lower.

    training: the settings of the run.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # on a CPU torch raises a plain RuntimeError
        if not isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) and "DefaultCPUAllocator" not in str(error):
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        message = Errors.MEMORY.format(reason=reason, streams=training.streams, steps=training.steps)
        raise SettingsError(message) from error
