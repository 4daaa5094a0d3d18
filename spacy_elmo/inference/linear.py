"""Products with weights that oneDNN has laid out once, where this build of torch can; else plain ones."""

import torch
import torch.nn.functional as F
from torch import Tensor


class PrepackedLinear:
    """y = x W^T + b in float32. weight: *Shape:* (out, in); bias: (out,) or None; rows: usual number of rows of x.

    The prepacking operators are private to torch: they are tried once on a row, and left alone where they are
    missing or disagree with the plain product.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: int) -> None:
        self.bias = bias
        self.weight = weight.contiguous()
        self.prepacked = False
        if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
            return
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, rows)
            probe = torch.linspace(-1, 1, weight.shape[1])[None]
            result = torch.ops.mkldnn._linear_pointwise(probe, packed, bias, "none", [], "")
        except (RuntimeError, AttributeError, TypeError, NotImplementedError):
            return
        if torch.allclose(result, F.linear(probe, self.weight, bias), rtol=1e-4, atol=1e-4):
            self.weight, self.prepacked = packed, True

    def __call__(self, x: Tensor) -> Tensor:
        """x: *Shape:* (rows, in). Returns (rows, out)."""
        if self.prepacked:
            result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
            return result
        return F.linear(x, self.weight, self.bias)
