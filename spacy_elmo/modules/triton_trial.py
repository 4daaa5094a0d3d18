"""Whether Triton's kernels run on a GPU. It compiles them at their first call, which needs more than the package."""

import warnings
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

LEAST_CAPABILITY = (7, 0)  # of NVIDIA's GPUs that Triton compiles for


def kernels(module: str, device: torch.device) -> Any:
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
        from .triton_kernel import add_one  # it imports Triton

        with torch.cuda.device(device):  # kernels run on the current GPU
            return bool(add_one(torch.zeros(1, device=device)) == 1)
    except Exception as error:  # whatever a compiler, a linker or a driver raises
        message = f"Triton can't compile for {device}, so torch computes the same more slowly: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return False
