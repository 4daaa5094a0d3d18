"""The device that a GPU's number stands for."""

import torch

from ..errors import Errors, SettingsError


def device_of(cuda_device: int) -> torch.device:
    """Return the GPU with this number; -1: the CPU. Raises SettingsError if torch sees no such GPU."""
    if cuda_device < 0:
        return torch.device("cpu")
    seen = torch.cuda.device_count()
    if cuda_device >= seen:
        expected = f"0 to {seen - 1}, or -1 (the CPU)" if seen else "-1 (the CPU)"
        names = f"{seen} of them, counted from 0" if seen else "no GPU"
        raise SettingsError(Errors.EMBED_DEVICE.format(got=cuda_device, seen=names, expected=expected))
    return torch.device("cuda", cuda_device)


def number_of(device: torch.device) -> int:
    """Return the number of a GPU; -1 for the CPU. A GPU without a number is the first."""
    return -1 if device.type == "cpu" else device.index or 0
