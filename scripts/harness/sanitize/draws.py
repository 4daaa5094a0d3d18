"""Random sizes and arrays for calls of loops: odd ones, empty ones, unaligned ones, with NaN and infinity."""

from __future__ import annotations

import threading

import torch
from torch import Generator, Tensor

drawn = threading.local()  # has `odd` after a thread has drawn a value of _ODD
_ODD = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e38, -1e38, 1e-42, 88.0, -88.0, 65504.0)


def integer(g: Generator, low: int, high: int) -> int:
    """Draw an integer of low..high."""
    return int(torch.randint(low, high + 1, (), generator=g))


def chance(g: Generator, share: float) -> bool:
    """Draw true with this probability."""
    return bool(torch.rand((), generator=g) < share)


def choice(g: Generator, *values: float | None) -> float | None:
    """Draw one of the values."""
    return values[integer(g, 0, len(values) - 1)]


def size(g: Generator, highest: int) -> int:
    """Draw a size of 0 or more: often 0 or 1, else any up to `highest`."""
    return integer(g, 0, 1) if chance(g, 0.2) else integer(g, 1, highest)


def unaligned(g: Generator, array: Tensor) -> Tensor:
    """Return a copy that begins anywhere in its memory, and ends where the memory ends."""
    skipped = integer(g, 0, 17)
    memory = array.new_empty(array.numel() + skipped)
    return memory[skipped:].view(array.shape).copy_(array)


def normal(g: Generator, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw numbers; in one array of twenty some are NaN, infinite, denormal or huge."""
    array = torch.randn(shape, generator=g) * scale
    if array.numel() and chance(g, 0.05):
        drawn.odd = True
        for _ in range(3):
            array.view(-1)[integer(g, 0, array.numel() - 1)] = _ODD[integer(g, 0, len(_ODD) - 1)]
    return unaligned(g, array.to(dtype))
