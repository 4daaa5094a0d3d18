"""float32 weights as bfloat16 weights and remainders, which have four bytes together, as the float32 weights have."""

import torch
from torch import Tensor

HALF = 0x8000  # half of the last place of bfloat16, as bits of float32

ROWS = 64  # number of rows that are split at a time, so that temporary arrays are small


def split(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weights rounded to bfloat16, and the remainders as int16, both of the shape of `weight`.

    A tie is rounded away from zero. Torch rounds it to even, from which `joined` could not tell the remainder's sign.

    weight: float32.
    """
    bits = weight.contiguous().view(torch.int32)
    high, low = torch.empty_like(bits, dtype=torch.int16), torch.empty_like(bits, dtype=torch.int16)
    for part, to_high, to_low in zip(*(array.split(ROWS) for array in (bits, high, low))):
        to_high.copy_((part + HALF) >> 16)
        to_low.copy_(part)
    return high.view(torch.bfloat16), low


def joined(high: Tensor, low: Tensor) -> Tensor:
    """Return the float32 weights that `split` was called with, bit for bit.

    high: the weights in bfloat16.
    low: the remainders.
    """
    return ((high.contiguous().view(torch.int16).to(torch.int32) << 16) + low).view(torch.float32)
