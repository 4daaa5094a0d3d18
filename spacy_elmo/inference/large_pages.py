"""Weights in large pages of memory: whoever reads all of them at every step translates fewer addresses."""

import ctypes
import sys
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

PAGE = 2**21  # bytes, of x86-64
ADVICE = 14  # Linux's MADV_HUGEPAGE


def in_large_pages(tensor: Tensor) -> Tensor:
    """A contiguous copy that begins at a large page, on Linux, where the system may then use such pages.

    Elsewhere, and of what is smaller than two of them, the tensor itself.
    """
    size = tensor.numel() * tensor.element_size()
    advise = _madvise()
    if advise is None or tensor.device.type != "cpu" or size < 2 * PAGE:
        return tensor
    room = torch.empty(size + PAGE, dtype=torch.uint8, device=tensor.device)  # whatever torch's default is
    begin = -room.data_ptr() % PAGE
    # pages behind the last whole one stay small: they would occupy more than is used. A refusal changes nothing.
    advise(ctypes.c_void_p(room.data_ptr() + begin), ctypes.c_size_t(size // PAGE * PAGE), ADVICE)
    return room[begin : begin + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)


@lru_cache(maxsize=1)
def _madvise() -> Any:
    return getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
