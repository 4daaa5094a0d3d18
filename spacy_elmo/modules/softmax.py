"""The biLM's output layer: word vectors and biases shared by both directions; sampled and full losses."""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

SAMPLED_ROWS = 128  # of a sampled loss: a block of logits stays in the second-level cache
ROWS = 64  # of the full loss: 64 x 50,000 float32 are 13 MB, within the last-level cache


class Softmax(nn.Module):
    """weight: (n_words, projection_dim), bias: (n_words,); words sorted by frequency, as the sampler expects."""

    def __init__(self, n_words: int, projection_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_words, projection_dim))
        self.bias = nn.Parameter(torch.zeros(n_words))

    def reset_parameters(
        self, log_probabilities: Tensor | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Weights N(0, 1/projection_dim) as in bilm-tf; biases the words' log probabilities, or 0."""
        nn.init.normal_(self.weight, 0.0, 1.0 / math.sqrt(self.weight.shape[1]), generator=generator)
        with torch.no_grad():
            self.bias.zero_() if log_probabilities is None else self.bias.copy_(log_probabilities)

    @torch.no_grad()
    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """-log p(target) over all words, not differentiable. x: (rows, projection_dim), targets: (rows,); (rows,)."""
        losses = torch.empty(len(x), dtype=x.dtype)
        buffer = x.new_empty(min(ROWS, len(x)), len(self.bias))
        for start in range(0, len(x), ROWS):
            rows, target = x[start : start + ROWS], targets[start : start + ROWS]
            logits = torch.addmm(self.bias, rows, self.weight.t(), out=buffer[: len(rows)])
            of_target = logits.gather(1, target[:, None])[:, 0]
            highest = logits.amax(1)
            # in place: passes over logits that lie in the cache are twice as fast as F.cross_entropy's (measured)
            total = logits.sub_(highest[:, None]).exp_().sum(1)
            losses[start : start + ROWS] = total.log_() + highest - of_target
        return losses


class LogUniform:
    """Draws distinct words with probability log((k + 2) / (k + 1)) / log(n_words + 1), as TensorFlow's
    log_uniform_candidate_sampler(unique=True) does: it draws until `n_samples` distinct ones are found.
    """

    def __init__(self, n_words: int, n_samples: int, generator: torch.Generator) -> None:
        if not 0 < n_samples <= n_words:
            raise ValueError(f"negative samples: got {n_samples}, expected 1 to {n_words}, the number of words")
        self.n_words, self.n_samples, self.generator = n_words, n_samples, generator
        ranks = torch.arange(n_words, dtype=torch.float64)
        self._log_miss = torch.log1p(-torch.log((ranks + 2) / (ranks + 1)) / math.log(n_words + 1))

    def draw(self) -> tuple[Tensor, int]:
        """The distinct words, sorted, *Shape:* (n_samples,), and the number of draws it took."""
        words = torch.empty(0, dtype=torch.int64)
        while True:
            uniform = torch.rand(3 * self.n_samples, generator=self.generator, dtype=torch.float64)
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
        return torch.log(-torch.expm1(tries * self._log_miss[words])).float()


class _SampledLoss(torch.autograd.Function):
    """Sum of the rows' losses. Gradients are taken with it, so that a block of logits is passed over while it lies
    in the cache; the backward pass only scales them.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, offset: Tensor, true_logits: Tensor, hits: Tensor) -> Tensor:
        d_x, d_weight, d_offset = torch.empty_like(x), torch.zeros_like(weight), torch.zeros_like(offset)
        d_true, losses = torch.empty_like(true_logits), torch.empty_like(true_logits)
        transposed = weight.t().contiguous()
        for start in range(0, len(x), SAMPLED_ROWS):
            rows = slice(start, start + SAMPLED_ROWS)
            logits = torch.addmm(offset, x[rows], transposed)
            hit_rows = torch.nonzero(hits[rows] >= 0)[:, 0]
            logits[hit_rows, hits[rows][hit_rows]] = -math.inf
            highest = torch.maximum(logits.amax(1), true_logits[rows])
            p = logits.sub_(highest[:, None]).exp_()
            of_target = (true_logits[rows] - highest).exp_()
            total = p.sum(1) + of_target
            p.div_(total[:, None])
            losses[rows] = total.log() + highest - true_logits[rows]
            d_true[rows] = of_target / total - 1
            torch.mm(p, weight, out=d_x[rows])
            d_weight.addmm_(p.t(), x[rows])
            d_offset += p.sum(0)
        ctx.save_for_backward(d_x, d_weight, d_offset, d_true)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient * d_loss for gradient in ctx.saved_tensors), None


def sampled_loss(
    x: Tensor,
    targets: Tensor,
    sample: Tensor,
    weight: Tensor,
    bias: Tensor,
    target_weight: Tensor,
    target_bias: Tensor,
    sample_log_expected: Tensor,
    target_log_expected: Tensor,
) -> Tensor:
    """The sum over rows of -log p(target) among the target and the sampled words, each corrected by its log
    expected count (Jean et al. 2015); a sampled word that is the row's target is masked. Not a perplexity's loss.

    x: *Shape:* (rows, projection_dim); targets: (rows,); sample: (samples,), sorted; weight, bias: the sampled words';
    target_weight, target_bias: *Shape:* (rows, projection_dim), (rows,). Returns a scalar.
    """
    true_logits = (x * target_weight).sum(1) + target_bias - target_log_expected
    place = torch.searchsorted(sample, targets).clamp_(max=len(sample) - 1)
    hits = torch.where(sample[place] == targets, place, -1)
    loss: Tensor = _SampledLoss.apply(x, weight, bias - sample_log_expected, true_logits, hits)
    return loss
