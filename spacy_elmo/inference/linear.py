"""Matrix multiplications with weights that oneDNN has laid out in advance, if this build of torch can do it."""

import torch
import torch.nn.functional as F
from torch import Tensor

# largest relative and absolute difference from the plain matrix multiplication with which the prepacked one is used
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}

# In float32 the columns of W are multiplied in parts of this number, and the results are added. OneDNN adds the terms
# of a dot product one after another. With 2,048 terms that has twice the rounding error of torch's own linear layers.
# With parts of 256 the mean error is that of torch. With parts of 128 the largest error is below torch's too.
COLUMNS = 256


def padded_rows(n: int) -> int:
    """Return the number of rows to which `n` rows are padded: one of few, since oneDNN keeps code for each for ever."""
    step = 1 if n <= 16 else 4 if n <= 32 else 8 if n <= 64 else 16
    return -(-n // step) * step


class PrepackedLinear:
    """y = x W^T + b, with x and y in float32 and the matrix multiplication in `dtype`.

    The prepacking operators are private to torch. So they are tried on one row first. If they are missing, or their
    result differs from that of the plain matrix multiplication, the latter is used.

    weight: *Shape:* (out, in), W.
    rows: usual number of rows of x.
    columns: of W in each part (see COLUMNS). Fewer are more exact, and slower for few rows.
    lossless: whether `restored` must return the float32 weight also if it was rounded to bfloat16.
    prepacks: whether the weight is prepacked if that is possible.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        rows: int,
        dtype: torch.dtype = torch.float32,
        columns: int = COLUMNS,
        lossless: bool = False,
        prepacks: bool = True,
    ) -> None:
        self.remainder: Tensor | None = None
        if (weight.dtype, dtype) == (torch.float32, torch.bfloat16):
            weight, remainder = split(weight)
            self.remainder = remainder if lossless else None
        self.dtype = dtype
        self.bias = None if bias is None else bias.to(dtype)
        self.weights = [weight.to(dtype).contiguous()]
        self.prepacked = False
        if not prepacks or weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
            return
        plain, tolerance = self.weights[0], TOLERANCE[dtype]
        probe = torch.linspace(-1, 1, weight.shape[1], dtype=dtype, device=weight.device)[None]
        parts = plain.split(columns, 1) if dtype == torch.float32 else [plain]
        try:
            packed = [torch.ops.mkldnn._reorder_linear_weight(part.contiguous(), rows) for part in parts]
            result = self._multiply(probe, packed)
            if not torch.equal(torch.cat([part.to_dense() for part in packed], 1), plain):  # `plain` must restore it
                return
        except (RuntimeError, AttributeError, TypeError, NotImplementedError):
            return
        if torch.allclose(result, F.linear(probe, plain, self.bias), rtol=tolerance, atol=tolerance):
            self.weights, self.prepacked = packed, True

    def restored(self) -> Tensor:
        """Return a copy of the weight, *Shape:* (out, in): float32 and bit for bit if `lossless` was set."""
        plain = torch.cat([w.to_dense() for w in self.weights], 1) if self.prepacked else self.weights[0].clone()
        return plain if self.remainder is None else joined(plain, self.remainder)

    def __call__(self, x: Tensor) -> Tensor:
        """Return x W^T + b, *Shape:* (rows, out), float32. x: *Shape:* (rows, in)."""
        x = x.to(self.dtype)
        if not self.prepacked:
            return F.linear(x, self.weights[0], self.bias).float()
        rows, padding = len(x), padded_rows(len(x)) - len(x)
        if padding:
            x = F.pad(x, (0, 0, 0, padding))
        return self._multiply(x, self.weights)[:rows].float()

    def _multiply(self, x: Tensor, packed: list[Tensor]) -> Tensor:
        """Return x W^T + b, with W in prepacked parts, each with some of its columns."""
        first, *others = packed
        start = first.shape[1]
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x[:, :start], first, self.bias, "none", [], "")
        for part in others:
            end = start + part.shape[1]
            result = torch.ops.mkldnn._linear_pointwise.binary(x[:, start:end], result, part, None, "add")
            start = end
        return result


HALF = 0x8000  # half of the last place of bfloat16, as bits of float32
ROWS = 64  # number of rows that are split at a time, so that temporary arrays are small


def split(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return float32 weights rounded to bfloat16, and the remainders as int16, both of the shape of `weight`.

    A tie is rounded away from zero. Torch rounds it to even, from which `joined` could not tell the remainder's sign.
    """
    bits = weight.contiguous().view(torch.int32)
    high, low = torch.empty_like(bits, dtype=torch.int16), torch.empty_like(bits, dtype=torch.int16)
    for part, to_high, to_low in zip(*(array.split(ROWS) for array in (bits, high, low))):
        to_high.copy_((part + HALF) >> 16)
        to_low.copy_(part)
    return high.view(torch.bfloat16), low


def joined(high: Tensor, low: Tensor) -> Tensor:
    """Return the float32 weights that `split` was called with, bit for bit. high, low: what it returned."""
    return ((high.contiguous().view(torch.int16).to(torch.int32) << 16) + low).view(torch.float32)
