"""The biLM's output layer, which both directions share, and its losses: full and sampled softmax."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..kernels import address
from ..modules.loops import NAMES, loops, triton_kernels

BLOCK_ROWS = 64  # of logits that `Softmax.loss` computes at a time: with 50,000 words 13 MB, which fit in the cache
# Rows of logits that `sampled_loss` computes at a time: enough for matrix multiplications to run at full speed
# (measured). With more than 8,192 sampled words a block has fewer rows.
MAX_BLOCK_ROWS, MIN_BLOCK_ROWS, MAX_BLOCK_LOGITS = 1280, 64, 1280 << 13
GPU_BLOCKS = 16  # of these blocks at a time on a GPU, which has no such cache, but must be kept busy


class Softmax(nn.Module):
    """The output layer of the full and the sampled softmax: p = softmax(x weight^T + bias).

    The parameters are `weight`, (n_words, projection_dim), and `bias`, (n_words,). The vocabulary is sorted by falling
    frequency. x is the top layer's output in one direction.
    """

    def __init__(self, n_words: int, projection_dim: int) -> None:
        super().__init__()
        self.n_words, self.projection_dim = n_words, projection_dim
        self.weight = nn.Parameter(torch.empty(n_words, projection_dim))
        self.bias = nn.Parameter(torch.zeros(n_words))

    def reset_parameters(
        self, log_probabilities: Tensor | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Initialise the weights with N(0, 1 / projection_dim), as bilm-tf does.

        log_probabilities: *Shape:* (n_words,), initial biases, the logarithms of the words' frequencies; None: zeros.
        """
        nn.init.normal_(self.weight, 0.0, 1.0 / math.sqrt(self.weight.shape[1]), generator=generator)
        with torch.no_grad():
            self.bias.zero_() if log_probabilities is None else self.bias.copy_(log_probabilities)

    def log_probabilities(self, x: Tensor) -> Tensor:
        """Return the logarithms of all words' probabilities, *Shape:* (rows, n_words). x: (rows, projection_dim)."""
        return F.log_softmax(F.linear(x, self.weight, self.bias), 1)

    @torch.no_grad()
    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return -log p(target) by the full softmax, in nats, *Shape:* (rows,). It is not differentiable."""
        losses = torch.empty(len(x), dtype=x.dtype)
        buffer = x.new_empty(min(BLOCK_ROWS, len(x)), len(self.bias))
        for start in range(0, len(x), BLOCK_ROWS):
            rows, target = x[start : start + BLOCK_ROWS], targets[start : start + BLOCK_ROWS]
            logits = torch.addmm(self.bias, rows, self.weight.t(), out=buffer[: len(rows)])
            target_logits = logits.gather(1, target[:, None])[:, 0]
            highest = logits.amax(1)
            # In place, since the block is in the cache: twice as fast as F.cross_entropy (measured).
            total = logits.sub_(highest[:, None]).exp_().sum(1)
            losses[start : start + BLOCK_ROWS] = total.log_() + highest - target_logits
        return losses


def sampled_loss(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    targets: Tensor,
    sample_log_expected: Tensor,
    target_log_expected: Tensor,
    matmul_dtype: torch.dtype | None = None,
) -> Tensor:
    """Return the sum over rows of -log p(target), with p among the target and the sampled words only, in nats.

    The logarithm of each word's expected count is subtracted from its logit (Jean et al. 2015). A sampled word that is
    the row's target is left out. The loss gives no perplexity. But if all words are sampled and the expected counts are
    1, it is the loss of the full softmax.

    x: *Shape:* (rows, projection_dim).
    weight, bias: of the sampled words, followed by those of the targets that are not among them.
    targets: *Shape:* (rows,), indices into weight and bias.
    sample_log_expected, target_log_expected: logarithms of the expected counts (`LogUniform`), *Shape:* (samples,) and
        (rows,).
    matmul_dtype: type of the matrix multiplications and of the logits; None: the type of x.

    Returns a scalar of the type of x, differentiable with respect to x, weight and bias.
    """
    loss: Tensor = _SampledLoss.apply(
        x, weight, bias, targets, sample_log_expected, target_log_expected, matmul_dtype or x.dtype
    )
    return loss


class _SampledLoss(torch.autograd.Function):
    """`sampled_loss`. The forward pass computes the gradients as well, while a block of logits is in the cache."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        sample_log_expected: Tensor,
        target_log_expected: Tensor,
        matmul_dtype: torch.dtype,
    ) -> Tensor:
        n_samples, n_rows = len(sample_log_expected), len(x)
        target_weight = weight[targets]
        target_logits = (x * target_weight).sum(1) + bias[targets] - target_log_expected
        hits = torch.where(targets < n_samples, targets, -1).int()
        offset = bias[:n_samples] - sample_log_expected
        low_weight, low_x = weight[:n_samples].to(matmul_dtype), x.to(matmul_dtype)
        transposed = low_weight.t().contiguous()
        # The row of ones gives the gradient of the bias in the matrix multiplication for that of the weight.
        with_ones = torch.cat([low_x.t(), low_x.new_ones(1, n_rows)])
        d_x = torch.empty_like(low_x)
        d_samples = torch.zeros(len(with_ones), n_samples, dtype=x.dtype, device=x.device)
        losses, d_target = torch.empty_like(target_logits), torch.empty_like(target_logits)
        most = 1 if x.device.type == "cpu" else GPU_BLOCKS
        block = min(n_rows, most * MAX_BLOCK_ROWS, max(MIN_BLOCK_ROWS, most * MAX_BLOCK_LOGITS // n_samples))
        buffer = torch.empty(block, n_samples, dtype=matmul_dtype, device=x.device)
        for start in range(0, n_rows, block):
            rows = slice(start, min(start + block, n_rows))
            logits = torch.mm(low_x[rows], transposed, out=buffer[: rows.stop - start])
            _to_probabilities(logits, offset, target_logits[rows], hits[rows], losses[rows], d_target[rows])
            torch.mm(logits, low_weight, out=d_x[rows])
            d_samples += with_ones[:, rows] @ logits
        d_weight, d_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        d_weight[:n_samples], d_bias[:n_samples] = d_samples[:-1].t(), d_samples[-1]
        _add_rows(d_weight, targets, x * d_target[:, None])
        _add_rows(d_bias[:, None], targets, d_target[:, None])
        ctx.save_for_backward(d_x.to(x.dtype).addcmul_(target_weight, d_target[:, None]), d_weight, d_bias)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradient * d_loss for gradient in ctx.saved_tensors), None, None, None, None


def _to_probabilities(
    logits: Tensor, offset: Tensor, target_logits: Tensor, hits: Tensor, losses: Tensor, d_target: Tensor
) -> None:
    """Turn a block's logits into probabilities in place, and compute its losses: compiled, on a GPU, or in torch.

    logits: *Shape:* (rows, samples), x weight^T for the sampled words. Overwritten by the probabilities.
    offset: *Shape:* (samples,), added to each row of the logits.
    target_logits: *Shape:* (rows,), corrected logits of the targets.
    hits: *Shape:* (rows,), int32, the index of the row's target among the samples, where the probability is set to 0;
        -1 if the target is not among them.
    losses, d_target: *Shape:* (rows,), overwritten by -log p(target) and its gradient with respect to target_logits.
    """
    library = loops(logits)
    if library is not None:
        (rows, words), real = logits.shape, torch.float32
        work = torch.empty_like(offset)
        getattr(library, f"sampled_softmax_{NAMES[logits.dtype]}")(
            rows,
            words,
            address("logits", logits, logits.dtype, (rows, words)),
            address("offset", offset, real, (words,)),
            address("target_logits", target_logits, real, (rows,)),
            address("hits", hits, torch.int32, (rows,)),
            address("work", work, real, (words,)),
            address("losses", losses, real, (rows,)),
            address("d_target", d_target, real, (rows,)),
        )
        return
    fused = None if logits.dtype == torch.float64 else triton_kernels(logits.device)
    if fused is not None and logits.shape[1] <= fused.MOST_WORDS:
        with torch.cuda.device_of(logits):  # kernels run on the current GPU
            fused.to_probabilities(logits, offset, target_logits, hits, losses, d_target)
        return
    p = logits + offset
    place = hits.clamp(min=0).long()[:, None]  # without a test of values, for which a GPU would have to wait
    p.scatter_(1, place, p.gather(1, place).masked_fill_(hits[:, None] >= 0, -math.inf))
    highest = torch.maximum(p.amax(1), target_logits)
    p = p.sub_(highest[:, None]).exp_()
    p_target = (target_logits - highest).exp_()
    total = p.sum(1) + p_target
    logits.copy_(p.div_(total[:, None]))
    losses.copy_(total.log() + highest - target_logits)
    d_target.copy_(p_target / total - 1)


def _add_rows(table: Tensor, rows: Tensor, values: Tensor) -> None:
    """Add values to rows of a table, in a fixed order. On a GPU index_add_ adds in any order."""
    if table.is_cuda:
        table += torch.ops.aten.embedding_dense_backward(values, rows, len(table), -1, False)
    else:
        table.index_add_(0, rows, values)


class LogUniform:
    """Draws distinct words, the word of rank k with probability log((k + 2) / (k + 1)) / log(n_words + 1).

    This is the distribution of TensorFlow's log_uniform_candidate_sampler(unique=True): words are drawn until there are
    `n_samples` distinct ones. It fits a vocabulary that is sorted by falling frequency, with ranks counted from 0.
    """

    def __init__(self, n_words: int, n_samples: int) -> None:
        self.n_words, self.n_samples = n_words, n_samples
        ranks = torch.arange(n_words, dtype=torch.float64)
        self._log_miss = torch.log1p(-torch.log((ranks + 2) / (ranks + 1)) / math.log(n_words + 1))

    def draw(self, generator: torch.Generator, device: torch.device | None = None) -> tuple[Tensor, int]:
        """Return distinct words, sorted, *Shape:* (n_samples,), and the number of draws, repetitions included.

        generator: of the CPU, so that the words do not depend on the device.
        """
        words = torch.empty(0, dtype=torch.int64, device=device)
        while True:
            uniform = torch.rand(3 * self.n_samples, generator=generator, dtype=torch.float64)
            new = (torch.exp(uniform * math.log(self.n_words + 1)) - 1).long().clamp_(max=self.n_words - 1)
            words = torch.cat([words, new.to(words.device)])
            distinct, inverse = torch.unique(words, return_inverse=True)
            if len(distinct) >= self.n_samples:
                break
        order = torch.arange(len(words), device=device)
        first = torch.full_like(distinct, len(words)).scatter_reduce_(0, inverse, order, "amin")
        last = torch.sort(first).values[self.n_samples - 1]
        return distinct[first <= last], int(last) + 1

    def log_expected(self, words: Tensor, n_draws: int) -> Tensor:
        """Return the logarithm of the probability that each word is among the sampled ones, 1 - (1 - p) ** n_draws.

        TensorFlow calls this the expected count of the word. The result is float32.
        """
        self._log_miss = self._log_miss.to(words.device)
        return torch.log(-torch.expm1(n_draws * self._log_miss[words])).float()
