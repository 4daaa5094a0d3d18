"""Matrix multiplications with weights that oneDNN has laid out in advance, if this build of torch can do it."""

import torch
import torch.nn.functional as F
from torch import Tensor

# largest relative and absolute difference from the plain matrix multiplication with which the prepacked one is used
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}


def padded_rows(n: int) -> int:
    """Return the number of rows to which the left matrix of a matrix multiplication is padded.

    It has few different values, because oneDNN compiles code for each number of rows and never frees it.

    n: number of rows.
    """
    step = 1 if n <= 16 else 4 if n <= 32 else 8 if n <= 64 else 16
    return -(-n // step) * step


class PrepackedLinear:
    """y = x W^T + b, with x and y in float32 and the matrix multiplication in `dtype`.

    The prepacking operators are private to torch. So they are tried on one row first. If they are missing, or their
    result differs from that of the plain matrix multiplication, the latter is used.

    weight: *Shape:* (out, in), W.
    bias: *Shape:* (out,), b; None: no bias.
    rows: usual number of rows of x.
    dtype: type of the matrix multiplication, float32 or bfloat16.
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
            if not torch.equal(packed.to_dense(), self.weight):  # `plain` must restore it
                return
        except (RuntimeError, AttributeError, TypeError, NotImplementedError):
            return
        tolerance = TOLERANCE[dtype]
        if torch.allclose(result, F.linear(probe, self.weight, self.bias), rtol=tolerance, atol=tolerance):
            self.weight, self.prepacked = packed, True

    @property
    def plain(self) -> Tensor:
        """A copy of the weight, *Shape:* (out, in), of the type of the matrix multiplication."""
        return self.weight.to_dense() if self.prepacked else self.weight.clone()

    def __call__(self, x: Tensor) -> Tensor:
        """Return x W^T + b, *Shape:* (rows, out), float32.

        x: *Shape:* (rows, in).
        """
        x = x.to(self.dtype)
        if not self.prepacked:
            return F.linear(x, self.weight, self.bias).float()
        rows, padding = len(x), padded_rows(len(x)) - len(x)
        if padding:
            x = F.pad(x, (0, 0, 0, padding))
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return result[:rows].float()
