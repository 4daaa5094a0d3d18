"""Matrix products of another type than what surrounds them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear(x: Tensor, layer: nn.Linear, products: torch.dtype | None = None) -> Tensor:
    """layer(x), with the product taken in the type `products` (None: x's) and returned in x's; the bias is added there.

    x: *Shape:* (rows, in); returns (rows, out).
    """
    if products is None or products == x.dtype:
        return F.linear(x, layer.weight, layer.bias)
    return F.linear(x.to(products), layer.weight.to(products)).to(x.dtype) + layer.bias
