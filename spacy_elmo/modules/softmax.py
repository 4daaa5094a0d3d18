"""The biLM's output layers, which both directions share, and their losses: full, sampled and adaptive softmax."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ..errors import SettingsError
from ..formats.softmax import DIVISOR, adaptive_shapes
from ..kernels import address
from .loops import NAMES, loops, triton_kernels

BLOCK_ROWS = 64  # of logits that `Softmax.loss` computes at a time: with 50,000 words 13 MB, which fit in the cache
# Rows of logits that `sampled_loss` computes at a time: enough for matrix multiplications to run at full speed
# (measured). With more than 8,192 sampled words a block has fewer rows.
MAX_BLOCK_ROWS, MIN_BLOCK_ROWS, MAX_BLOCK_LOGITS = 1280, 64, 1280 << 13
GPU_BLOCKS = 16  # of these blocks at a time on a GPU, which has no such cache, but must be kept busy
MAX_LOGITS = 1 << 22  # that `AdaptiveSoftmax.loss` computes at a time: 17 MB of float32


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

    Raises ValueError if n_samples is not from 1 to n_words.
    """

    def __init__(self, n_words: int, n_samples: int) -> None:
        if not 0 < n_samples <= n_words:
            raise ValueError(f"negative samples: got {n_samples}, expected 1 to {n_words}, the number of words")
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


class AdaptiveSoftmax(nn.Module):
    """Exact log probabilities over all words, as torch.nn.AdaptiveLogSoftmaxWithLoss with a bias computes them.

    The parameters are `weight`, `bias`, `down` and `words` (see `adaptive_shapes`). Vocabulary and x: as in `Softmax`.

    cutoffs: rank of the first word of each cluster, counted from 0, in rising order.

    Raises SettingsError if a cluster has no word, or vectors of width 0.
    """

    def __init__(self, n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> None:
        super().__init__()
        check_cutoffs(n_words, projection_dim, cutoffs)
        self.n_words, self.projection_dim, self.cutoffs = n_words, projection_dim, list(cutoffs)
        empty = {name: torch.empty(shape) for name, shape in self._shapes().items()}
        self.weight, self.bias = nn.Parameter(empty["weight"]), nn.Parameter(torch.zeros_like(empty["bias"]))
        self.down = nn.ParameterList([empty[f"down.{i}"] for i in range(len(cutoffs))])
        self.words = nn.ParameterList([empty[f"words.{i}"] for i in range(len(cutoffs))])

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return adaptive_shapes(self.n_words, self.projection_dim, self.cutoffs)

    @torch.no_grad()
    def reset_parameters(
        self, log_probabilities: Tensor | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Initialise the weights uniformly in ±1 / sqrt(width of the input), as torch does for linear layers.

        log_probabilities: *Shape:* (n_words,), logarithms of the words' frequencies. The biases become those of the
            frequent words and of the clusters. None: the biases become 0.
        """
        for weight in (self.weight, *self.down, *self.words):
            bound = weight.shape[1] ** -0.5
            weight.uniform_(-bound, bound, generator=generator)
        if log_probabilities is None:
            self.bias.zero_()
            return
        bounds = [*self.cutoffs, self.n_words]
        clusters = [log_probabilities[start:stop].logsumexp(0, keepdim=True) for start, stop in pairwise(bounds)]
        self.bias.copy_(torch.cat([log_probabilities[: self.cutoffs[0]], *clusters]))

    def log_probabilities(self, x: Tensor) -> Tensor:
        """Return the logarithms of all words' probabilities, *Shape:* (rows, n_words). x: (rows, projection_dim)."""
        first, n_frequent = F.log_softmax(F.linear(x, self.weight) + self.bias, 1), self.cutoffs[0]
        within = [F.log_softmax(F.linear(F.linear(x, down), words), 1) for down, words in zip(self.down, self.words)]
        clusters = [first[:, n_frequent + i, None] + log_p for i, log_p in enumerate(within)]
        return torch.cat([first[:, :n_frequent], *clusters], 1)

    def forward(self, x: Tensor, targets: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Return -log p(target) in nats, *Shape:* (rows,), differentiable. Parameters: as in `adaptive_losses`."""
        return adaptive_losses(list(self.parameters()), self.cutoffs, x, targets, matmul_dtype)

    @torch.no_grad()
    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return what `forward` does, in blocks of rows to bound the memory. It is not differentiable."""
        widest = max(shape[0] for shape in self._shapes().values())
        rows = max(1, MAX_LOGITS // widest)
        return torch.cat([self(*block) for block in zip(x.split(rows), targets.split(rows))])


def check_cutoffs(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> None:
    """Raise SettingsError if a cluster has no word, or vectors of width 0. cutoffs: as for `AdaptiveSoftmax`."""
    bounds = [0, *cutoffs, n_words]
    if not cutoffs or any(start >= stop for start, stop in pairwise(bounds)):
        raise SettingsError(
            f"training.softmax.cutoffs is {list(cutoffs)}, but the vocabulary has {n_words} words. Expected one number "
            f"or more, from 1 to {n_words - 1}, each larger than the one before: lower or leave out the last, or give "
            "a larger vocabulary."
        )
    if projection_dim < DIVISOR:
        raise SettingsError(
            f"projection_dim is {projection_dim}, too small for an adaptive softmax: its first cluster has a "
            'quarter of that width. Expected 4 or more, or set training.softmax.kind to "sampled" or "full".'
        )
    least = DIVISOR ** len(cutoffs)
    if projection_dim < least:
        most = max(n for n in range(len(cutoffs)) if projection_dim >= DIVISOR**n)
        raise SettingsError(
            f"training.softmax.cutoffs has {len(cutoffs)} numbers, too many for a projection_dim of {projection_dim}: "
            f"each cluster has a quarter of the width before it. Expected {most} at most, or a projection_dim of "
            f"{least:,} or more."
        )


def adaptive_losses(
    parameters: Sequence[Tensor], cutoffs: Sequence[int], x: Tensor, targets: Tensor, matmul_dtype: torch.dtype | None
) -> Tensor:
    """Return -log p(target) in nats, *Shape:* (rows,), differentiable with respect to `parameters` and `x`.

    The parameters are arguments, because each thread of a training step differentiates with respect to its own copies.
    torch.func.functional_call would exchange the parameters of the module for all threads.

    parameters: weight, bias, down and words, in the order of AdaptiveSoftmax.parameters().
    matmul_dtype: type of the matrix multiplications; None: the type of x.
    """
    matmul_dtype = matmul_dtype or x.dtype
    weight, bias, *tails = parameters
    n_clusters, n_frequent = len(cutoffs), cutoffs[0]
    log_p = F.log_softmax(_matmul(x, weight, matmul_dtype) + bias, 1)
    # 0 for frequent words, i + 1 for words of cluster i
    cluster = torch.bucketize(targets, torch.tensor(cutoffs, device=targets.device), right=True)
    column = torch.where(cluster == 0, targets, n_frequent + cluster - 1)
    losses = -log_p.gather(1, column[:, None])[:, 0]
    for i in range(n_clusters):
        rows = torch.nonzero(cluster == i + 1)[:, 0]  # may be empty: then the cluster's gradients are 0
        logits = _matmul(_matmul(x[rows], tails[i], matmul_dtype), tails[n_clusters + i], matmul_dtype)
        within = F.cross_entropy(logits, targets[rows] - cutoffs[i], reduction="none")
        losses = losses.index_add(0, rows, within)
    return losses


def _matmul(x: Tensor, weight: Tensor, matmul_dtype: torch.dtype) -> Tensor:
    """Return x weight^T in the type of x, multiplied in another type."""
    return F.linear(x.to(matmul_dtype), weight.to(matmul_dtype)).to(x.dtype)


# Both have n_words, projection_dim, reset_parameters(log_probabilities, generator) and loss(x, targets). The sampled
# softmax is a training loss of Softmax, not a class of its own.
OutputLayer = Softmax | AdaptiveSoftmax
