"""The compiled loops, for tensors: whether they run on one, and the checked addresses that they are given."""

import ctypes

import torch
from torch import Tensor

from .. import kernels
from ..kernels import address as address
from ..kernels import address_of_rows as address_of_rows
from ..kernels import bound as bound

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}  # endings of loops that there are for both types


def loops(tensor: Tensor) -> ctypes.CDLL | None:
    """The compiled loops, if they were built and run on tensors of this type and device."""
    return kernels.load() if tensor.dtype in NAMES and tensor.device.type == "cpu" else None


def optional_address(name: str, tensor: Tensor | None, dtype: torch.dtype, shape: tuple[int, ...]) -> int | None:
    """As address; None if there is no tensor."""
    return None if tensor is None else address(name, tensor, dtype, shape)
