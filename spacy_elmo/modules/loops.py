"""The compiled loops for tensors: whether they can run on a tensor, and the checked addresses of their arguments."""

import ctypes

import torch
from torch import Tensor

from .. import kernels
from ..kernels import address as address
from ..kernels import address_of_rows as address_of_rows
from ..kernels import bound as bound
from ..kernels.state import loops_state as loops_state

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}  # suffixes of loops that exist for both types


def loops(tensor: Tensor) -> ctypes.CDLL | None:
    """Return the compiled loops if they were built and can run on a tensor's type and device; else None.

    tensor: of any shape.
    """
    return kernels.load() if tensor.dtype in NAMES and tensor.device.type == "cpu" else None


def optional_address(name: str, tensor: Tensor | None, dtype: torch.dtype, shape: tuple[int, ...]) -> int | None:
    """Return the address of a tensor for a compiled loop, or None if there is no tensor.

    name: what messages call the argument.
    tensor: the tensor, or None.
    dtype: the type that it must have.
    shape: the shape that it must have.

    Raises KernelError if the tensor has another type or shape, or is not contiguous.
    """
    return None if tensor is None else address(name, tensor, dtype, shape)
