"""Probabilities, losses and gradients of logits on a GPU, in one kernel that reads and writes the logits once."""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"

import triton
import triton.language as tl
from torch import Tensor

MOST_WORDS = 16_384  # of a row, which a block of threads has in its registers


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
    """Compute what `sampled._to_probabilities` computes, from contiguous arrays of at most MOST_WORDS columns."""
    rows, words = logits.shape
    block = max(16, int(triton.next_power_of_2(words)))
    _probabilities[(rows,)](
        logits, offset, target_logits, hits, losses, d_target, words, BLOCK=block, num_warps=8 if block > 2048 else 4
    )
