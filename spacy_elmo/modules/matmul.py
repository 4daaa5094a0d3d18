"""Matrix multiplications of another type than the values around them."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear(x: Tensor, layer: nn.Linear, matmul_dtype: torch.dtype | None = None) -> Tensor:
    """Return layer(x), with the matrix multiplication in a type of its own. The bias is added in the type of x.

    x: *Shape:* (rows, in).
    layer: the linear layer.
    matmul_dtype: type of the matrix multiplication; None: the type of x.

    Returns *Shape:* (rows, out), of the type of x.
    """
    if matmul_dtype is None or matmul_dtype == x.dtype:
        result: Tensor = layer(x)  # a call, so that hooks run, and what was put in the place of the layer
        return result
    return F.linear(x.to(matmul_dtype), layer.weight.to(matmul_dtype)).to(x.dtype) + layer.bias
