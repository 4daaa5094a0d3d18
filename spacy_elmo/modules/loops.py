"""The compiled loops for tensors: whether they can run on a tensor, and the checked addresses of their arguments."""

import ctypes
import warnings
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

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


LEAST_CAPABILITY = (7, 0)  # of NVIDIA's GPUs that Triton compiles for


def triton_kernels(module: str, device: torch.device) -> Any:
    """Return a module of kernels; None: the device is no GPU, or Triton does not run on it, as on Windows.

    module: full name of a module that imports Triton.
    device: of the tensors.
    """
    return import_module(module) if device.type == "cuda" and _runs(device) else None


@lru_cache(maxsize=64)
def _runs(device: torch.device) -> bool:
    if find_spec("triton") is None:
        return False
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return False
    try:
        from .triton_kernels import add_one  # it imports Triton

        with torch.cuda.device(device):  # kernels run on the current GPU
            return bool(add_one(torch.zeros(1, device=device)) == 1)
    except Exception as error:  # whatever a compiler, a linker or a driver raises
        message = f"Triton can't compile for {device}, so torch computes the same more slowly: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return False
