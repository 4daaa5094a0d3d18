"""The sampled softmax: a loss over the targets and a few thousand words drawn by their frequency."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..lstm.cell import NAMES, loops

# rows of logits at once: enough for the products to run at full rate (measured); fewer where there are many words
BLOCK, LEAST_BLOCK, MOST_LOGITS = 1280, 64, 1280 << 13


class LogUniform:
    """Draws distinct words with probability log((k + 2) / (k + 1)) / log(n_words + 1), as TensorFlow's
    log_uniform_candidate_sampler(unique=True) does: it draws until `n_samples` distinct ones are found.
    """

    def __init__(self, n_words: int, n_samples: int) -> None:
        if not 0 < n_samples <= n_words:
            raise ValueError(f"negative samples: got {n_samples}, expected 1 to {n_words}, the number of words")
        self.n_words, self.n_samples = n_words, n_samples
        ranks = torch.arange(n_words, dtype=torch.float64)
        self._log_miss = torch.log1p(-torch.log((ranks + 2) / (ranks + 1)) / math.log(n_words + 1))

    def draw(self, generator: torch.Generator) -> tuple[Tensor, int]:
        """The distinct words, sorted, *Shape:* (n_samples,), and the number of draws it took."""
        words = torch.empty(0, dtype=torch.int64)
        while True:
            uniform = torch.rand(3 * self.n_samples, generator=generator, dtype=torch.float64)
            new = (torch.exp(uniform * math.log(self.n_words + 1)) - 1).long().clamp_(max=self.n_words - 1)
            words = torch.cat([words, new])
            distinct, inverse = torch.unique(words, return_inverse=True)
            if len(distinct) >= self.n_samples:
                break
        first = torch.full((len(distinct),), len(words)).scatter_reduce_(0, inverse, torch.arange(len(words)), "amin")
        found = torch.sort(first).values[self.n_samples - 1]
        return distinct[first <= found], int(found) + 1

    def log_expected(self, words: Tensor, tries: int) -> Tensor:
        """log of the expected count of each word in a draw that took `tries`; the shape of words, float32."""
        return torch.log(-torch.expm1(tries * self._log_miss.to(words.device)[words])).float()


class _SampledLoss(torch.autograd.Function):
    """Sum of the rows' losses. Gradients are taken with it, so that a block of logits is passed over while it lies
    in the cache; the backward pass only scales them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        sample_offset: Tensor,
        target_offset: Tensor,
        products: torch.dtype,
    ) -> Tensor:
        n_sample, n_rows = len(sample_offset), len(x)
        of_targets = weight[targets]
        true_logits = (x * of_targets).sum(1) + bias[targets] - target_offset
        hits = torch.where(targets < n_sample, targets, -1).int()
        offset = bias[:n_sample] - sample_offset
        low, low_x = weight[:n_sample].to(products), x.to(products)
        transposed = low.t().contiguous()
        with_ones = torch.cat([low_x.t(), low_x.new_ones(1, n_rows)])  # the sums of the columns come with the products
        d_x, d_low = torch.empty_like(low_x), torch.zeros(len(with_ones), n_sample, dtype=x.dtype, device=x.device)
        losses, d_true = torch.empty_like(true_logits), torch.empty_like(true_logits)
        block = min(n_rows, BLOCK, max(LEAST_BLOCK, MOST_LOGITS // n_sample))
        buffer = torch.empty(block, n_sample, dtype=products, device=x.device)
        for start in range(0, n_rows, block):
            rows = slice(start, min(start + block, n_rows))
            logits = torch.mm(low_x[rows], transposed, out=buffer[: rows.stop - start])
            _probabilities(logits, offset, true_logits[rows], hits[rows], losses[rows], d_true[rows])
            torch.mm(logits, low, out=d_x[rows])
            d_low += with_ones[:, rows] @ logits
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        d_weight[:n_sample], d_bias[:n_sample] = d_low[:-1].t(), d_low[-1]
        d_weight.index_add_(0, targets, x * d_true[:, None])
        d_bias.index_add_(0, targets, d_true)
        ctx.save_for_backward(d_x.to(x.dtype).addcmul_(of_targets, d_true[:, None]), d_weight, d_bias)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient * d_loss for gradient in ctx.saved_tensors), None, None, None, None


def _probabilities(
    logits: Tensor, offset: Tensor, true_logits: Tensor, hits: Tensor, losses: Tensor, d_true: Tensor
) -> None:
    """Turn a block's logits into probabilities in place; fill its losses and the targets' probabilities less one."""
    library = loops(logits)
    if library is not None:
        work = torch.empty_like(offset)
        getattr(library, f"sampled_softmax_{NAMES[logits.dtype]}")(
            *logits.shape,
            logits.data_ptr(),
            offset.data_ptr(),
            true_logits.data_ptr(),
            hits.data_ptr(),
            work.data_ptr(),
            losses.data_ptr(),
            d_true.data_ptr(),
        )
        return
    p = logits + offset
    hit_rows = torch.nonzero(hits >= 0)[:, 0]
    p[hit_rows, hits[hit_rows].long()] = -math.inf
    highest = torch.maximum(p.amax(1), true_logits)
    p = p.sub_(highest[:, None]).exp_()
    of_target = (true_logits - highest).exp_()
    total = p.sum(1) + of_target
    logits.copy_(p.div_(total[:, None]))
    losses.copy_(total.log() + highest - true_logits)
    d_true.copy_(of_target / total - 1)


def sampled_loss(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    sample_log_expected: Tensor,
    target_log_expected: Tensor,
    products: torch.dtype | None = None,
) -> Tensor:
    """The sum over rows of -log p(target) among the target and the sampled words, each corrected by its log
    expected count (Jean et al. 2015); a sampled word that is the row's target is masked. Not a perplexity's loss,
    unless all words are the sample and the corrections are 0: then it is the full softmax's.

    x: *Shape:* (rows, projection_dim); weight, bias: (words, projection_dim), (words,): the sampled words, then the
    targets that are not among them; targets: (rows,), indices into these; sample_log_expected: (samples,);
    target_log_expected: (rows,); products: type of the matrix products and logits; None: x's. Returns a scalar.
    """
    loss: Tensor = _SampledLoss.apply(
        x, weight, bias, targets, sample_log_expected, target_log_expected, products or x.dtype
    )
    return loss
