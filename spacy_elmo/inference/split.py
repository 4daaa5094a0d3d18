"""float32 weights as bfloat16 and what rounding takes away: together the same four bytes, so that nothing is lost."""

import torch
from torch import Tensor

HALF = 0x8000  # half of bfloat16's last place, in bits of float32

ROWS = 64  # at a time, for the sake of memory


def split(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight: float32. Returns the nearest bfloat16, of two equally near ones the larger in size, and the rest, int16.

    Ties to even, torch's way, would not tell from which side they came.
    """
    bits = weight.contiguous().view(torch.int32)
    high, low = torch.empty_like(bits, dtype=torch.int16), torch.empty_like(bits, dtype=torch.int16)
    for part, to_high, to_low in zip(*(array.split(ROWS) for array in (bits, high, low))):
        to_high.copy_((part + HALF) >> 16)
        to_low.copy_(part)
    return high.view(torch.bfloat16), low


def joined(high: Tensor, low: Tensor) -> Tensor:
    """The weight that was split, bit for bit."""
    return ((high.contiguous().view(torch.int16).to(torch.int32) << 16) + low).view(torch.float32)
