"""Products with weights that oneDNN has laid out once, where this build of torch can; else plain ones."""

import torch
import torch.nn.functional as F
from torch import Tensor

# largest difference from the plain product, relative and absolute, with which the prepacked one is taken
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}


def rows_taken(n: int) -> int:
    """How many rows a product of n takes: few numbers, for oneDNN keeps code for each that it has met, and memory
    would grow.
    """
    step = 1 if n <= 16 else 4 if n <= 32 else 8 if n <= 64 else 16
    return -(-n // step) * step


class PrepackedLinear:
    """y = x W^T + b, x and y float32, the product in `dtype`.

    weight: *Shape:* (out, in); bias: (out,) or None; rows: usual number of rows of x.
    The prepacking operators are private to torch: they are tried once on a row, and left alone where they are
    missing or disagree with the plain product.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: int, dtype: torch.dtype = torch.float32) -> None:
        self.dtype = dtype
        self.bias = None if bias is None else bias.to(dtype)
        self.weight = weight.to(dtype).contiguous()
        self.prepacked = False
        if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
            return
        probe = torch.linspace(-1, 1, weight.shape[1], dtype=dtype, device=weight.device)[None]
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, rows)
            result = torch.ops.mkldnn._linear_pointwise(probe, packed, self.bias, "none", [], "")
            if not torch.equal(packed.to_dense(), self.weight):  # `plain` must give it back
                return
        except (RuntimeError, AttributeError, TypeError, NotImplementedError):
            return
        tolerance = TOLERANCE[dtype]
        if torch.allclose(result, F.linear(probe, self.weight, self.bias), rtol=tolerance, atol=tolerance):
            self.weight, self.prepacked = packed, True

    @property
    def plain(self) -> Tensor:
        """A copy of the weight, *Shape:* (out, in), of the products' type."""
        return self.weight.to_dense() if self.prepacked else self.weight.clone()

    def __call__(self, x: Tensor) -> Tensor:
        """x: *Shape:* (rows, in). Returns (rows, out)."""
        x = x.to(self.dtype)
        if not self.prepacked:
            return F.linear(x, self.weight, self.bias).float()
        rows, more = len(x), rows_taken(len(x)) - len(x)
        if more:
            x = F.pad(x, (0, 0, 0, more))
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return result[:rows].float()
