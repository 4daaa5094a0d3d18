"""Matrix multiplications: their types, and weights that oneDNN has laid out in advance, if this build of torch can."""

from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import kernels
from ..errors import SettingsError

Precision = Literal["float32", "bfloat16", "auto"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "auto")
CPUINFO = Path("/proc/cpuinfo")  # of Linux


def has_bfloat16(device: torch.device) -> bool:
    """Tell whether a device itself multiplies in bfloat16. On a CPU, SPACY_ELMO_ISA must allow the instructions too."""
    if device.type == "cuda":
        # AMD's have it; NVIDIA's since Ampere
        return torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    if not CPUINFO.is_file():
        check = getattr(torch.cpu, "_is_avx512_bf16_supported", None)  # private to torch, of x86
        return check is not None and bool(check()) and kernels.allows("avx512_bf16")
    with CPUINFO.open() as file:
        flags = set(file.read(8192).split())  # of the first core
    sets = {"bf16": "neon", "avx512_bf16": "avx512_bf16", "amx_bf16": "avx512_bf16"}  # by Linux's names
    return any(kernels.allows(sets[flag]) for flag in flags & sets.keys())


def dtype_of(precision: Precision, device: torch.device) -> torch.dtype:
    """Return the type in which an engine reads its weights. "auto" is bfloat16 if that is faster, else float32.

    It is faster if the device multiplies in it, or if compiled loops run the LSTMs: they wait for memory.

    Raises SettingsError for an unknown name, and for an unknown value of SPACY_ELMO_ISA.
    """
    kernels.allows("amx")  # raises if SPACY_ELMO_ISA has an unknown value
    if precision not in PRECISIONS:
        raise SettingsError(f"model.precision is {precision!r}. Expected one of {', '.join(PRECISIONS)}.")
    if precision == "auto":
        is_faster = has_bfloat16(device) or (device.type == "cpu" and bool(kernels.loops_state().instruction_sets))
        return torch.bfloat16 if is_faster else torch.float32
    return torch.float32 if precision == "float32" else torch.bfloat16


def products_of(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the type of torch's matrix multiplications for weights of a type: never an emulated bfloat16."""
    return dtype if has_bfloat16(device) else torch.float32


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

    It copies W and b. The prepacking operators are private to torch. So they are tried on one row first. If they are
    missing, or their result differs from that of the plain matrix multiplication, the latter is used.

    weight: *Shape:* (out, in), W.
    rows: usual number of rows of x.
    columns: of W in each part (see COLUMNS). Fewer are more exact, and slower for few rows.
    prepacks: whether the weight is prepacked if that is possible.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        rows: int,
        dtype: torch.dtype = torch.float32,
        columns: int = COLUMNS,
        prepacks: bool = True,
    ) -> None:
        self.dtype = dtype
        self.bias = None if bias is None else bias.to(dtype, copy=True)
        if (weight.dtype, dtype) == (torch.float32, torch.bfloat16):
            plain = rounded(weight)
        else:
            plain = torch.empty(weight.shape, dtype=dtype, device=weight.device).copy_(weight)
        self.weights = [plain]
        self.prepacked = False
        if not prepacks or weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
            return
        tolerance = TOLERANCE[dtype]
        probe = torch.linspace(-1, 1, weight.shape[1], dtype=dtype, device=weight.device)[None]
        parts = plain.split(columns, 1) if dtype == torch.float32 else [plain]
        try:
            packed = [torch.ops.mkldnn._reorder_linear_weight(part.contiguous(), rows) for part in parts]
            result = self._multiply(probe, packed)
        except (RuntimeError, AttributeError, TypeError, NotImplementedError):
            return
        if torch.allclose(result, F.linear(probe, plain, self.bias), rtol=tolerance, atol=tolerance):
            self.weights, self.prepacked = packed, True

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


def rounded(weight: Tensor) -> Tensor:
    """Return float32 weights rounded to bfloat16. A tie is rounded away from zero; torch rounds it to even."""
    bits = weight.contiguous().view(torch.int32)
    return ((bits + HALF) >> 16).to(torch.int16).view(torch.bfloat16)
