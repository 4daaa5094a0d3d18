"""The compiled loops and the kernels for GPUs: whether they can run on a tensor."""

import ctypes
import warnings
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from .. import kernels
from ..kernels import address

NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}  # suffixes of loops that exist for both types
LEAST_CAPABILITY = (7, 0)  # of NVIDIA's GPUs that Triton compiles for


def loops(tensor: Tensor) -> ctypes.CDLL | None:
    """Return the compiled loops if they can run on a tensor's type and device; else None."""
    return kernels.load() if tensor.dtype in NAMES and tensor.device.type == "cpu" else None


def optional_address(name: str, tensor: Tensor | None, dtype: torch.dtype, shape: tuple[int, ...]) -> int | None:
    """Return what `address` returns, or None if there is no tensor."""
    return None if tensor is None else address(name, tensor, dtype, shape)


@lru_cache(maxsize=64)
def triton_kernels(device: torch.device) -> Any:
    """Return the module of kernels for a GPU; None: the device is none, or Triton does not run on it, as on Windows."""
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < LEAST_CAPABILITY:
        return None
    try:
        from . import triton_kernels as module  # it imports Triton

        with torch.cuda.device(device):  # kernels run on the current GPU
            return module if module.add_one(torch.zeros(1, device=device)) == 1 else None
    except Exception as error:  # whatever a compiler, a linker or a driver raises
        message = f"Triton can't compile for {device}, so torch computes the same more slowly: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return None
