"""Kernels for GPUs, written in Triton, which torch's CUDA builds bring along: the LSTM cell and the sampled softmax.

In torch a step of the cell is 12 kernels, and its gradient 25, each of which reads and writes the gates in the GPU's
memory. The equations are those of `lstm_cell.py`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"

MOST_WORDS = 16_384  # of a row of the softmax, which a block of threads has in its registers
_MOST_COLUMNS = 1024  # of a block of the cell


@triton.jit
def _add_one(x):
    tl.store(x, tl.load(x) + 1)


def add_one(x: Tensor) -> Tensor:
    """Add 1 to the first value of a tensor in place, and return the tensor. x: float32, on a GPU."""
    _add_one[(1,)](x)
    return x


@triton.jit
def _tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def _forward(
    sums,
    gates,
    bias,
    cell_in,
    keep,
    cell_out,
    out,
    dim,
    gates_stride,
    cell_in_stride,
    cell_out_stride,
    out_stride,
    clip,
    HAS_KEEP: tl.constexpr,
    HAS_CLIP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row, direction, batch = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(0)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = column < dim
    sums += (direction * batch + row) * 4 * dim + column
    gates += direction * gates_stride + row * 4 * dim + column
    bias += direction * 4 * dim + column
    place = row * dim + column
    i = tl.sigmoid(tl.load(sums, inside).to(tl.float32) + tl.load(bias, inside))
    j = _tanh(tl.load(sums + dim, inside).to(tl.float32) + tl.load(bias + dim, inside))
    f = tl.sigmoid(tl.load(sums + 2 * dim, inside).to(tl.float32) + tl.load(bias + 2 * dim, inside))
    o = tl.sigmoid(tl.load(sums + 3 * dim, inside).to(tl.float32) + tl.load(bias + 3 * dim, inside))
    c = tl.load(cell_in + direction * cell_in_stride + place, inside)
    if HAS_KEEP:
        c *= tl.load(keep + row)
    c = c * f + i * j
    if HAS_CLIP:
        c = tl.minimum(tl.maximum(c, -clip), clip)
    tl.store(cell_out + direction * cell_out_stride + place, c, inside)
    tl.store(out + direction * out_stride + place, (_tanh(c) * o).to(out.dtype.element_ty), inside)
    real = gates.dtype.element_ty
    tl.store(gates, i.to(real), inside)
    tl.store(gates + dim, j.to(real), inside)
    tl.store(gates + 2 * dim, f.to(real), inside)
    tl.store(gates + 3 * dim, o.to(real), inside)


@triton.jit
def _backward(
    gates,
    cell_in,
    keep,
    cell_out,
    d_out,
    d_cell,
    d_previous,
    dim,
    gates_stride,
    cell_in_stride,
    cell_out_stride,
    clip,
    HAS_KEEP: tl.constexpr,
    HAS_CLIP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row, direction, batch = tl.program_id(0), tl.program_id(1).to(tl.int64), tl.num_programs(0)
    column = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    inside = column < dim
    gates += direction * gates_stride + row * 4 * dim + column
    place = row * dim + column
    dense = direction * batch * dim + place
    i = tl.load(gates, inside).to(tl.float32)
    j = tl.load(gates + dim, inside).to(tl.float32)
    f = tl.load(gates + 2 * dim, inside).to(tl.float32)
    o = tl.load(gates + 3 * dim, inside).to(tl.float32)
    c = tl.load(cell_out + direction * cell_out_stride + place, inside)
    previous = tl.load(cell_in + direction * cell_in_stride + place, inside)
    kept = 1.0
    if HAS_KEEP:
        kept = tl.load(keep + row)
    d_o = tl.load(d_out + dense, inside).to(tl.float32)
    tanh_c = _tanh(c)
    d_c = tl.load(d_cell + dense, inside) + d_o * o * (1 - tanh_c * tanh_c)
    if HAS_CLIP:
        d_c = tl.where((c > -clip) & (c < clip), d_c, 0.0)
    real = gates.dtype.element_ty
    tl.store(gates, (d_c * j * i * (1 - i)).to(real), inside)
    tl.store(gates + dim, (d_c * i * (1 - j * j)).to(real), inside)
    tl.store(gates + 2 * dim, (d_c * previous * kept * f * (1 - f)).to(real), inside)
    tl.store(gates + 3 * dim, (d_o * tanh_c * o * (1 - o)).to(real), inside)
    tl.store(d_previous + dense, d_c * f * kept, inside)


def cell_forward(
    sums: Tensor,
    gates: Tensor,
    bias: Tensor,
    cell_in: Tensor,
    keep: Tensor | None,
    cell_out: Tensor,
    out: Tensor,
    clip: float | None,
) -> None:
    """Compute what `lstm_cell.cell_forward` does, for all directions at once. Each direction is contiguous.

    sums: contiguous. bias: *Shape:* (directions, 1, 4 dim). bias, keep and cells are float32.
    """
    arrays, strided = (sums, gates, bias, cell_in, keep, cell_out, out), (gates, cell_in, cell_out, out)
    _run(_forward, out.shape, arrays, strided, keep, clip)


def cell_backward(
    gates: Tensor,
    cell_in: Tensor,
    keep: Tensor | None,
    cell_out: Tensor,
    d_out: Tensor,
    d_cell: Tensor,
    clip: float | None,
) -> Tensor:
    """Compute what `lstm_cell.cell_backward` does, for all directions at once. keep, cells and d_cell are float32."""
    d_out, d_cell = d_out.contiguous(), d_cell.contiguous()
    d_previous = torch.empty_like(d_cell)
    arrays = (gates, cell_in, keep, cell_out, d_out, d_cell, d_previous)
    _run(_backward, d_out.shape, arrays, (gates, cell_in, cell_out), keep, clip)
    return d_previous


def _run(kernel, shape, arrays, strided, keep, clip):
    """Run a kernel of the cell over (directions, batch, dim). strided: arrays of whose directions it needs strides."""
    directions, batch, dim = shape
    block = min(_MOST_COLUMNS, int(triton.next_power_of_2(dim)))
    kernel[batch, directions, triton.cdiv(dim, block)](
        *arrays,
        dim,
        *(array.stride(0) for array in strided),
        0.0 if clip is None else float(clip),
        HAS_KEEP=keep is not None,
        HAS_CLIP=clip is not None,
        BLOCK=block,
    )


@triton.jit
def _probabilities(logits, offset, target_logits, hits, losses, d_target, words, BLOCK: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    inside = column < words
    logits += row * words + column
    x = tl.load(logits, inside, other=-float("inf")).to(tl.float32) + tl.load(offset + column, inside, other=0.0)
    x = tl.where(column == tl.load(hits + row), -float("inf"), x)
    target = tl.load(target_logits + row)
    highest = tl.maximum(tl.max(x, 0), target)
    p, p_target = tl.exp(x - highest), tl.exp(target - highest)
    total = tl.sum(p, 0) + p_target
    tl.store(logits, (p / total).to(logits.dtype.element_ty), inside)
    tl.store(losses + row, tl.log(total) + highest - target)
    tl.store(d_target + row, p_target / total - 1)


def to_probabilities(
    logits: Tensor, offset: Tensor, target_logits: Tensor, hits: Tensor, losses: Tensor, d_target: Tensor
) -> None:
    """Compute what `_to_probabilities` of the softmax does, from contiguous arrays of at most MOST_WORDS columns."""
    rows, words = logits.shape
    block = max(16, int(triton.next_power_of_2(words)))
    _probabilities[(rows,)](
        logits, offset, target_logits, hits, losses, d_target, words, BLOCK=block, num_warps=8 if block > 2048 else 4
    )
