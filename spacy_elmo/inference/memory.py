"""What the engine does about memory: buffers that batches share, weights in large pages, free memory handed back."""

import ctypes
import math
import sys
import threading
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

CPU = torch.device("cpu")
MOST_BYTES = 2**26  # of a tensor that a buffer holds
PAGE = 2**21  # bytes of a large page, on x86-64
ADVICE = 14  # Linux's MADV_HUGEPAGE


class Buffers(threading.local):
    """Memory that one batch leaves to the next: tensors by name, each thread's own.

    New memory for each batch costs time, because the system clears its pages, and it leaves gaps that nothing else
    fits into.
    """

    def __init__(self) -> None:
        self._held: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int, dtype: torch.dtype = torch.float32, device: torch.device = CPU) -> Tensor:
        """A tensor whose values mean nothing, valid until this thread asks for the same name again.

        name: always asked for with the same dtype and device.
        shape: of the tensor. One of more than MOST_BYTES is not held for the next batch.
        dtype, device: of the tensor. On the CPU it begins at a multiple of 64 bytes, as torch's memory does.
        """
        size = math.prod(shape)
        if size * dtype.itemsize > MOST_BYTES:
            return torch.empty(shape, dtype=dtype, device=device)
        if name not in self._held or self._held[name].numel() < size:
            self._held.pop(name, None)  # before more is asked for
            self._held[name] = torch.empty(size + size // 8, dtype=dtype, device=device)
        return self._held[name][:size].view(shape)


def in_large_pages(tensor: Tensor) -> Tensor:
    """A contiguous copy that begins at a large page, on Linux, where the system may then use such pages.

    Whoever reads all weights at every step translates fewer addresses then. Elsewhere, and if the tensor is smaller
    than two such pages, the tensor itself.

    tensor: of any shape and strides.
    """
    size = tensor.numel() * tensor.element_size()
    advise = _madvise()
    if advise is None or tensor.device.type != "cpu" or size < 2 * PAGE:
        return tensor
    room = torch.empty(size + PAGE, dtype=torch.uint8, device=tensor.device)  # whatever torch's default is
    begin = -room.data_ptr() % PAGE
    # what fills no page stays in small ones: a large one would occupy more than is used. A refusal changes nothing
    advise(ctypes.c_void_p(room.data_ptr() + begin), ctypes.c_size_t(size // PAGE * PAGE), ADVICE)
    return room[begin : begin + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)


def trim() -> None:
    """Hand free memory back to the system, with glibc; nothing elsewhere.

    For after large arrays that were made on the way to others: glibc would hold on to what they occupied.
    """
    if sys.platform == "linux":
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(ctypes.c_size_t(0))


@lru_cache(maxsize=1)
def _madvise() -> Any:
    return getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
