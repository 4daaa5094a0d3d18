"""The type of the matrix multiplications: float32 or bfloat16."""

from pathlib import Path
from typing import Literal

import torch

from ..errors import Errors, SettingsError

Precision = Literal["float32", "bfloat16", "auto"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "auto")


def has_bfloat16(device: torch.device) -> bool:
    """Tell whether the machine itself multiplies in bfloat16. Emulated, it is slower than float32.

    device: on which the multiplications run.
    """
    if device.type == "cuda":
        # AMD's have it; NVIDIA's since Ampere
        return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    check = getattr(torch.cpu, "_is_avx512_bf16_supported", None)  # private to torch, of x86
    if check is not None and check():
        return True
    cpuinfo = Path("/proc/cpuinfo")  # of Linux; ARM calls it bf16
    return cpuinfo.is_file() and bool({"avx512_bf16", "amx_bf16", "bf16"} & set(cpuinfo.read_text().split()))


def dtype_of(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the type of the matrix multiplications. "auto" is bfloat16 if the machine has it, else float32.

    precision: the setting of that name.
    device: on which the multiplications run.

    Raises SettingsError for "bfloat16" if the machine has none, and for an unknown name.
    """
    if precision not in PRECISIONS:
        raise SettingsError(Errors.PRECISION.format(got=precision, expected=", ".join(PRECISIONS)))
    if precision == "float32" or (precision == "auto" and not has_bfloat16(device)):
        return torch.float32
    if not has_bfloat16(device):
        raise SettingsError(Errors.BFLOAT16.format(device=device.type))
    return torch.bfloat16
