"""The adaptive softmax (Grave et al. 2017): rare words in clusters with narrower vectors."""

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import Errors, SettingsError
from ...formats.adaptive_file import DIVISOR, adaptive_shapes

LOGITS = 1 << 22  # of a block of rows when nothing is differentiated: 17 MB in float32


def check_cutoffs(n_words: int, projection_dim: int, cutoffs: Sequence[int]) -> None:
    """Raise SettingsError for clusters that would have no word, or vectors without a value."""
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
    """Exact log probabilities over all words, as torch.nn.AdaptiveLogSoftmaxWithLoss has them.

    cutoffs: where the clusters begin; words are sorted by falling frequency. Parameters: see adaptive_shapes.
    Raises SettingsError for cutoffs that these sizes have no room for.
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
        """Uniform in ±1 / sqrt(inputs), torch's for linear layers; biases the log probabilities of the frequent words
        and of the clusters, or 0.
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

    def forward(self, x: Tensor, targets: Tensor, products: torch.dtype | None = None) -> Tensor:
        """-log p(target), differentiable. x: *Shape:* (rows, projection_dim), targets: (rows,); (rows,)."""
        return adaptive_losses(list(self.parameters()), self.cutoffs, x, targets, products)

    @torch.no_grad()
    def loss(self, x: Tensor, targets: Tensor) -> Tensor:
        """-log p(target), not differentiable, in blocks of rows: memory is bounded."""
        widest = max(shape[0] for shape in self._shapes().values())
        rows = max(1, LOGITS // widest)
        blocks = [self(*block) for block in zip(x.split(rows), targets.split(rows))]
        return torch.cat(blocks)


def adaptive_losses(
    parameters: Sequence[Tensor], cutoffs: Sequence[int], x: Tensor, targets: Tensor, products: torch.dtype | None
) -> Tensor:
    """-log p(target); p is the word's where it is frequent, else its cluster's times the word's within it.

    parameters: weight, bias, down and words, as AdaptiveSoftmax.parameters() has them; they are given, so that threads
    can each differentiate by their own (torch's module has one set, and functional_call swaps it for all threads).
    products: type of the matrix products; None: x's.
    """
    products = products or x.dtype
    weight, bias, *tails = parameters
    n_clusters, first = len(cutoffs), cutoffs[0]
    log_p = F.log_softmax(_product(x, weight, products) + bias, 1)
    # a word's place among the clusters: 0 for the frequent ones
    cluster = torch.bucketize(targets, torch.tensor(cutoffs, device=targets.device), right=True)
    of_head = torch.where(cluster == 0, targets, first + cluster - 1)
    losses = -log_p.gather(1, of_head[:, None])[:, 0]
    for i in range(n_clusters):
        rows = torch.nonzero(cluster == i + 1)[:, 0]  # where there are none, the cluster's gradients are 0
        logits = _product(_product(x[rows], tails[i], products), tails[n_clusters + i], products)
        within = F.cross_entropy(logits, targets[rows] - cutoffs[i], reduction="none")
        losses = losses.index_add(0, rows, within)
    return losses


def _product(x: Tensor, weight: Tensor, products: torch.dtype) -> Tensor:
    """*Shape:* (rows, out), of x's type. x: (rows, in); weight: (out, in)."""
    return F.linear(x.to(products), weight.to(products)).to(x.dtype)
