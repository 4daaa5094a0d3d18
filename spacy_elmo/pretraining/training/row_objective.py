"""The loss by the sampled or the full softmax, whose optimizers change the rows that a batch used."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ...modules.softmax.full import Softmax
from ...modules.softmax.sampled import LogUniform, sampled_loss
from ..settings.sections import OptimizerSettings
from .distributed import Group
from .objective import Scorer
from .optimizers import row_optimizer


class _RowScorer:
    """Computes losses with some rows of a softmax.

    rows: *Shape:* (rows,), ids of the words, first the sampled ones.
    targets: *Shape:* (2, steps, streams), indices into `rows`.
    sample_log_expected, target_log_expected: see `sampled_loss`. The latter has the shape of `targets`.
    """

    def __init__(
        self, softmax: Softmax, rows: Tensor, targets: Tensor, sample_log_expected: Tensor, target_log_expected: Tensor
    ) -> None:
        self.rows, self.targets = rows, targets
        self.sample_log_expected, self.target_log_expected = sample_log_expected, target_log_expected
        self.weight, self.bias = softmax.weight.detach()[rows], softmax.bias.detach()[rows]

    def leaves(self) -> list[Tensor]:
        return [self.weight.detach().requires_grad_(), self.bias.detach().requires_grad_()]

    def loss(
        self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
    ) -> Tensor:
        weight, bias = leaves
        targets, expected = self.targets[direction, :, part], self.target_log_expected[direction, :, part]
        return sampled_loss(
            top, weight, bias, targets.reshape(-1), self.sample_log_expected, expected.reshape(-1), matmul_dtype
        )


class RowObjective:
    """The sampled softmax, of which an update changes only the rows of sampled words and targets, or the full softmax.

    All processes draw the same negatives, and each uses the rows of the targets of all processes. So their gradients
    have the same rows, and can be summed.

    softmax: changed in place.
    negatives: number of sampled words; None: the full softmax.
    settings: of the optimizer.
    """

    def __init__(self, softmax: Softmax, negatives: int | None, settings: OptimizerSettings) -> None:
        self.softmax = softmax
        self.sampler = None if negatives is None else LogUniform(len(softmax.bias), negatives)
        self.weight = row_optimizer(softmax.weight.data, settings)
        self.bias = row_optimizer(softmax.bias.data[:, None], settings)
        self._sums: list[tuple[Tensor, list[Tensor]]] = []  # rows, and gradients of weight and bias; at most one

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """Draw the negatives of a batch, and return what computes its losses."""
        if self.sampler is None:
            n_words = len(self.softmax.bias)
            zeros = torch.zeros(n_words, device=targets.device)
            return _RowScorer(
                self.softmax, torch.arange(n_words, device=targets.device), targets, zeros, zeros[targets]
            )
        sample, n_draws = self.sampler.draw(torch.Generator().manual_seed(seed), targets.device)
        words = group.union(targets)
        in_sample = torch.searchsorted(sample, words).clamp_(max=len(sample) - 1)
        not_sampled = sample[in_sample] != words
        row_of_word = torch.where(not_sampled, len(sample) - 1 + not_sampled.cumsum(0), in_sample)
        word_of_target = torch.searchsorted(words, targets)
        return _RowScorer(
            self.softmax,
            torch.cat([sample, words[not_sampled]]),
            row_of_word[word_of_target],
            self.sampler.log_expected(sample, n_draws),
            self.sampler.log_expected(words, n_draws)[word_of_target],
        )

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """Add the gradients of a batch. The sums have the rows of all batches of the update."""
        assert isinstance(scorer, _RowScorer)
        self._sums.append((scorer.rows, gradients))
        if len(self._sums) > 1:
            rows, index = torch.unique(torch.cat([rows for rows, _ in self._sums]), return_inverse=True)
            sums = []
            for parts in zip(*(gradients for _, gradients in self._sums)):
                total = parts[0].new_zeros(len(rows), *parts[0].shape[1:])
                sums.append(total.index_add_(0, index, torch.cat(parts)))
            self._sums = [(rows, sums)]

    def gradients(self) -> list[Tensor]:
        """Return the sums of the gradients: *Shape:* (rows, projection_dim) of the weight, (rows,) of the bias."""
        return self._sums[0][1]

    def replace(self, gradients: Sequence[Tensor]) -> None:
        """Use other gradients for the update. gradients: of the same rows."""
        self._sums = [(self._sums[0][0], list(gradients))]

    def update(self, rate: float, step: int) -> None:
        """Apply the gradients to their rows, and forget them.

        rate: learning rate.
        step: number of the update, from 1.
        """
        rows, (d_weight, d_bias) = self._sums.pop()
        self.weight.update(rows, d_weight, rate, step)
        self.bias.update(rows, d_bias[:, None], rate, step)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the optimizers' states as arrays, by names like "weight/" and the name in the state."""
        both = (("weight", self.weight), ("bias", self.bias))
        return {f"{title}/{name}": t.cpu().numpy().copy() for title, rows in both for name, t in rows.state().items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the optimizers' states. arrays: as `arrays` returned them."""
        for title, rows in (("weight", self.weight), ("bias", self.bias)):
            rows.restore({name: torch.from_numpy(np.array(arrays[f"{title}/{name}"])) for name in rows.state()})
