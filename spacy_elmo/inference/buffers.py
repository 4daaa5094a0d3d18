"""Memory that one batch leaves to the next."""

import math
import threading

import torch
from torch import Tensor

CPU = torch.device("cpu")
MOST_BYTES = 2**26  # of a tensor that is kept


class Buffers(threading.local):
    """Tensors by name, of the thread that asks: what is taken is its own until it takes that name again.

    New memory for each batch costs time, for the system clears its pages, and pieces that nobody else fits into.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int, dtype: torch.dtype = torch.float32, device: torch.device = CPU) -> Tensor:
        """Values mean nothing. A name always has the same dtype and device. What is very large is not kept.

        On the CPU it begins at a multiple of 64 bytes, as torch's memory does.
        """
        size = math.prod(shape)
        if size * dtype.itemsize > MOST_BYTES:
            return torch.empty(shape, dtype=dtype, device=device)
        if name not in self._kept or self._kept[name].numel() < size:
            self._kept.pop(name, None)  # before more is asked for
            self._kept[name] = torch.empty(size + size // 8, dtype=dtype, device=device)
        return self._kept[name][:size].view(shape)
