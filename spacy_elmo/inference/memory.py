"""The engine's memory: buffers that batches share, weights in large pages, free memory returned to the system."""

import ctypes
import math
import sys
import threading
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

CPU = torch.device("cpu")
MAX_BYTES = 2**26  # size of the largest tensor that is stored for the next batch
PAGE = 2**21  # bytes of a large page, on x86-64
ADVICE = 14  # Linux's MADV_HUGEPAGE


class Buffers(threading.local):
    """Tensors by name, whose memory each batch reuses. Each thread has separate ones.

    New memory for each batch would cost time, because the system clears its pages. It would also leave gaps that are
    too small for anything else.
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def empty(self, name: str, *shape: int, dtype: torch.dtype = torch.float32, device: torch.device = CPU) -> Tensor:
        """Return a tensor whose values are not set. It is valid until this thread uses the same name again.

        name: name of the buffer. It must always have the same dtype and device.
        shape: shape of the tensor. A tensor of more than MAX_BYTES is not stored for the next batch.
        dtype: type of the tensor.
        device: device of the tensor. On the CPU its address is a multiple of 64 bytes, as that of torch's memory is.
        """
        size = math.prod(shape)
        if size * dtype.itemsize > MAX_BYTES:
            return torch.empty(shape, dtype=dtype, device=device)
        if name not in self._tensors or self._tensors[name].numel() < size:
            self._tensors.pop(name, None)  # free the old memory before new memory is allocated
            self._tensors[name] = torch.empty(size + size // 8, dtype=dtype, device=device)
        return self._tensors[name][:size].view(shape)


def in_large_pages(tensor: Tensor) -> Tensor:
    """Return a contiguous copy of a tensor that starts at a large page, so that Linux may use large pages for it.

    With large pages the processor translates fewer addresses when it reads all weights at each step. On other systems,
    and if the tensor is smaller than two large pages, the tensor itself is returned.

    tensor: a tensor of any shape and strides.
    """
    size = tensor.numel() * tensor.element_size()
    advise = _madvise()
    if advise is None or tensor.device.type != "cpu" or size < 2 * PAGE:
        return tensor
    memory = torch.empty(size + PAGE, dtype=torch.uint8, device=tensor.device)  # not torch's default device
    offset = -memory.data_ptr() % PAGE
    # The end that does not fill a large page stays in small pages: a large one would use more memory than is needed. If
    # the system refuses, the copy is in small pages.
    advise(ctypes.c_void_p(memory.data_ptr() + offset), ctypes.c_size_t(size // PAGE * PAGE), ADVICE)
    return memory[offset : offset + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)


def trim() -> None:
    """Return free memory to the system, if the C library is glibc; else do nothing.

    It is called after large temporary arrays are deleted, because glibc would not return their memory.
    """
    if sys.platform == "linux":
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(ctypes.c_size_t(0))


@lru_cache(maxsize=1)
def _madvise() -> Any:
    return getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
