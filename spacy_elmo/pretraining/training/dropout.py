"""Dropout whose masks depend on a seed alone."""

from collections.abc import Callable

import torch
from torch import Tensor


def inverted_dropout(rate: float, seed: int, device: torch.device | None = None) -> Callable[[Tensor], Tensor] | None:
    """Return a function that applies inverted dropout; None: the rate is 0.

    The masks depend on the seed and the kind of device, not on the thread.

    rate: share of the values that is set to 0.
    seed: of the masks.
    device: on which the masks are drawn; None: the CPU.
    """
    if not rate:
        return None
    generator = torch.Generator(device or torch.device("cpu")).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.rand(x.shape, generator=generator, device=generator.device) >= rate
        return x * kept.to(x.device, x.dtype).div_(1 - rate)

    return drop
