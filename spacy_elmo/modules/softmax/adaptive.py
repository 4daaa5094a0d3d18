"""Adaptive softmax (Grave et al. 2017): rare words are in clusters, with narrower vectors.

The probability of a frequent word is a softmax over the frequent words and the clusters. The probability of a rare word
is that of its cluster times a softmax within the cluster.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import Errors, SettingsError
from ...formats.adaptive_file import DIVISOR, adaptive_shapes

# Largest number of logits computed at a time, without gradients: 17 MB of float32.
MAX_LOGITS = 1 << 22


def check_cutoffs(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> None:
    """Check that every cluster has a word, and vectors of width 1 or more.

    n_words: size of the vocabulary.
    projection_dim: width of the vectors of frequent words.
    cutoffs: rank of the first word of each cluster, counted from 0.

    Raises SettingsError if a cluster has no word, or vectors of width 0.
    """
    bounds = [0, *cutoffs, n_words]
    if not cutoffs or any(start >= stop for start, stop in pairwise(bounds)):
        message = Errors.ADAPTIVE_WORDS
        raise SettingsError(message.format(cutoffs=list(cutoffs), n_words=n_words, most=n_words - 1))
    if projection_dim < DIVISOR:
        raise SettingsError(Errors.ADAPTIVE_NARROW.format(projection_dim=projection_dim))
    least = DIVISOR ** len(cutoffs)
    if projection_dim < least:
        most = max(n for n in range(len(cutoffs)) if projection_dim >= DIVISOR**n)
        message = Errors.ADAPTIVE_WIDTH
        raise SettingsError(message.format(n=len(cutoffs), projection_dim=projection_dim, most=most, least=least))


class AdaptiveSoftmax(nn.Module):
    """Exact log probabilities over all words, as torch.nn.AdaptiveLogSoftmaxWithLoss with a bias computes them.

    The parameters are `weight`, `bias`, `down` and `words` (see `adaptive_shapes`).

    n_words: size of the vocabulary, which is sorted by falling frequency.
    projection_dim: width of x, the top layer's output in one direction.
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
        generator: source of the random numbers; None: torch's default generator.
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

    def forward(self, x: Tensor, targets: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
        """Return -log p(target) in nats, differentiable.

        x: *Shape:* (rows, projection_dim).
        targets: *Shape:* (rows,), word ids.
        matmul_dtype: type of the matrix multiplications; None: the type of x.

        Returns *Shape:* (rows,), of the type of x.
        """
        return adaptive_losses(list(self.parameters()), self.cutoffs, x, targets, matmul_dtype)

    @torch.no_grad()
    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """Return -log p(target) in nats. It is not differentiable, and computed in blocks of rows to bound the memory.

        x: *Shape:* (rows, projection_dim).
        targets: *Shape:* (rows,), word ids.

        Returns *Shape:* (rows,), of the type of x.
        """
        widest = max(shape[0] for shape in self._shapes().values())
        rows = max(1, MAX_LOGITS // widest)
        blocks = [self(*block) for block in zip(x.split(rows), targets.split(rows))]
        return torch.cat(blocks)


def adaptive_losses(
    parameters: Sequence[Tensor], cutoffs: Sequence[int], x: Tensor, targets: Tensor, matmul_dtype: torch.dtype | None
) -> Tensor:
    """Return -log p(target) in nats, differentiable with respect to `parameters` and `x`.

    The parameters are arguments, because each thread of a training step differentiates with respect to its own copies.
    torch.func.functional_call would exchange the parameters of the module for all threads.

    parameters: weight, bias, down and words, in the order of AdaptiveSoftmax.parameters().
    cutoffs: rank of the first word of each cluster, counted from 0.
    x: *Shape:* (rows, projection_dim).
    targets: *Shape:* (rows,), word ids.
    matmul_dtype: type of the matrix multiplications; None: the type of x.

    Returns *Shape:* (rows,), of the type of x.
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
    """Return x weight^T in the type of x, multiplied in another type.

    x: *Shape:* (rows, in).
    weight: *Shape:* (out, in).

    Returns *Shape:* (rows, out).
    """
    return F.linear(x.to(matmul_dtype), weight.to(matmul_dtype)).to(x.dtype)
