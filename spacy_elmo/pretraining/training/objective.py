"""What a batch's predictions are scored with: the sampled, the full or the adaptive softmax."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ...modules.softmax.adaptive import AdaptiveSoftmax, adaptive_losses
from ...modules.softmax.full import Softmax
from ...modules.softmax.sampled import LogUniform, sampled_loss
from ..settings.sections import OptimizerSettings
from .distributed import Group
from .optimizers import dense_optimizer, optimizer_arrays, restore_optimizer, row_optimizer, set_rate


class Scorer(Protocol):
    """What scores one batch; any number of threads may use it."""

    def leaves(self) -> list[Tensor]:
        """The values that gradients are wanted of, one's own for each call."""

    def loss(self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, products: torch.dtype) -> Tensor:
        """The sum of the losses of a part of the streams. top: *Shape:* (steps * streams of the part, width)."""


class Objective(Protocol):
    """A softmax, and the optimiser of its own."""

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """For a batch with these targets, *Shape:* (2, steps, streams); seed: of the update, the same everywhere."""

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """Take the gradients of a batch, of scorer.leaves()."""

    def gradients(self) -> list[Tensor]:
        """The sums of what was taken since the last update; they may be changed in place, or by replace."""

    def replace(self, gradients: Sequence[Tensor]) -> None:
        """Put others in their places."""

    def update(self, rate: float, step: int) -> None:
        """Apply them, and forget them. step: from 1."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The optimiser's state."""

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go to where arrays() was called."""


class _RowScorer:
    """rows: the words scored, the sampled ones first; the others: see sampled_loss."""

    def __init__(
        self, softmax: Softmax, rows: Tensor, targets: Tensor, sample_expected: Tensor, target_expected: Tensor
    ) -> None:
        self.rows, self.targets = rows, targets
        self.sample_expected, self.target_expected = sample_expected, target_expected
        self.weight, self.bias = softmax.weight.detach()[rows], softmax.bias.detach()[rows]

    def leaves(self) -> list[Tensor]:
        return [self.weight.detach().requires_grad_(), self.bias.detach().requires_grad_()]

    def loss(self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, products: torch.dtype) -> Tensor:
        weight, bias = leaves
        targets, expected = self.targets[direction, :, part], self.target_expected[direction, :, part]
        return sampled_loss(
            top, weight, bias, targets.reshape(-1), self.sample_expected, expected.reshape(-1), products
        )


class RowObjective:
    """The sampled softmax, whose updates touch the scored words' rows alone; or, with negatives None, the full one.

    Processes draw the same negatives, and score the targets of all, so that their gradients have the same rows.
    """

    def __init__(self, softmax: Softmax, negatives: int | None, settings: OptimizerSettings) -> None:
        self.softmax = softmax
        self.sampler = None if negatives is None else LogUniform(len(softmax.bias), negatives)
        self.weight = row_optimizer(softmax.weight.data, settings)
        self.bias = row_optimizer(softmax.bias.data[:, None], settings)
        self._taken: list[tuple[Tensor, list[Tensor]]] = []

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """See Objective."""
        if self.sampler is None:
            n_words = len(self.softmax.bias)
            nothing = torch.zeros(n_words, device=targets.device)
            return _RowScorer(
                self.softmax, torch.arange(n_words, device=targets.device), targets, nothing, nothing[targets]
            )
        sample, tries = self.sampler.draw(torch.Generator().manual_seed(seed))
        sample = sample.to(targets.device)
        words = group.union(targets)
        found = torch.searchsorted(sample, words).clamp_(max=len(sample) - 1)
        extra = sample[found] != words
        index = torch.where(extra, len(sample) - 1 + extra.cumsum(0), found)
        place = torch.searchsorted(words, targets)
        return _RowScorer(
            self.softmax,
            torch.cat([sample, words[extra]]),
            index[place],
            self.sampler.log_expected(sample, tries),
            self.sampler.log_expected(words, tries)[place],
        )

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """See Objective."""
        assert isinstance(scorer, _RowScorer)
        self._taken.append((scorer.rows, gradients))
        if len(self._taken) > 1:
            rows, place = torch.unique(torch.cat([rows for rows, _ in self._taken]), return_inverse=True)
            sums = []
            for parts in zip(*(gradients for _, gradients in self._taken)):
                total = parts[0].new_zeros(len(rows), *parts[0].shape[1:])
                sums.append(total.index_add_(0, place, torch.cat(parts)))
            self._taken = [(rows, sums)]

    def gradients(self) -> list[Tensor]:
        """See Objective: of the rows' weights and biases."""
        return self._taken[0][1]

    def replace(self, gradients: Sequence[Tensor]) -> None:
        """See Objective."""
        self._taken = [(self._taken[0][0], list(gradients))]

    def update(self, rate: float, step: int) -> None:
        """See Objective."""
        rows, (d_weight, d_bias) = self._taken.pop()
        self.weight.update(rows, d_weight, rate, step)
        self.bias.update(rows, d_bias[:, None], rate, step)

    def arrays(self) -> dict[str, np.ndarray]:
        """See Objective."""
        both = (("weight", self.weight), ("bias", self.bias))
        return {f"{title}/{name}": t.cpu().numpy().copy() for title, rows in both for name, t in rows.state().items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """See Objective."""
        for title, rows in (("weight", self.weight), ("bias", self.bias)):
            rows.restore({name: torch.from_numpy(np.array(arrays[f"{title}/{name}"])) for name in rows.state()})


class _AdaptiveScorer:
    def __init__(self, softmax: AdaptiveSoftmax, targets: Tensor) -> None:
        self.softmax, self.targets = softmax, targets

    def leaves(self) -> list[Tensor]:
        return [p.detach().requires_grad_() for p in self.softmax.parameters()]

    def loss(self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, products: torch.dtype) -> Tensor:
        targets = self.targets[direction, :, part].reshape(-1)
        return adaptive_losses(leaves, self.softmax.cutoffs, top, targets, products).sum()


class AdaptiveObjective:
    """The adaptive softmax, all of which every update changes."""

    def __init__(self, softmax: AdaptiveSoftmax, settings: OptimizerSettings) -> None:
        self.softmax, self.parameters = softmax, list(softmax.parameters())
        self.optimizer = dense_optimizer(self.parameters, replace(settings, weight_decay=0.0))
        self._taken: list[Tensor] = []

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """See Objective."""
        return _AdaptiveScorer(self.softmax, targets)

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """See Objective."""
        self._taken = [a + b for a, b in zip(self._taken, gradients)] if self._taken else list(gradients)

    def gradients(self) -> list[Tensor]:
        """See Objective."""
        return self._taken

    def replace(self, gradients: Sequence[Tensor]) -> None:
        """See Objective."""
        self._taken = list(gradients)

    def update(self, rate: float, step: int) -> None:
        """See Objective."""
        for parameter, gradient in zip(self.parameters, self._taken):
            parameter.grad = gradient
        self._taken = []
        set_rate(self.optimizer, rate)
        self.optimizer.step()

    def arrays(self) -> dict[str, np.ndarray]:
        """See Objective."""
        return optimizer_arrays(self.optimizer)

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """See Objective."""
        restore_optimizer(self.optimizer, arrays)
