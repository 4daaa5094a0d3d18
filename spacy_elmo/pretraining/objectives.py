"""The losses of pretraining: a softmax with its optimizer, and what scores a batch with it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import SettingsError
from .config import TrainingSettings
from .distributed import Group
from .optimizers import row_optimizer
from .softmax import LogUniform, Softmax, sampled_loss


class Scorer(NamedTuple):
    """Computes the losses of one batch. Several threads may use it at the same time.

    tables: the softmax's weights that the batch needs. rows: ids of their words.
    loss: returns the sum of -log p(target), in nats, over one direction of the streams of a part. It is called with
        `leaves`, the outputs of the top LSTM layer, *Shape:* (steps * streams of the part, projection_dim), direction
        and part, and the type of the matrix multiplications.
    """

    tables: list[Tensor]
    loss: Callable[[Sequence[Tensor], Tensor, int, slice, torch.dtype], Tensor]
    rows: Tensor

    def leaves(self) -> list[Tensor]:
        """Return the tables as new leaves of autograd, so that each thread gets gradients of its part."""
        return [table.detach().requires_grad_() for table in self.tables]


class RowObjective:
    """The sampled softmax, of which an update changes only the rows of sampled words and targets, or the full softmax.

    For each update call `add` for each batch, `gradients`, and `update` with their sums over all processes, clipped.
    All processes draw the same negatives, and each uses the rows of the targets of all, so the gradients can be summed.
    """

    def __init__(self, softmax: Softmax, settings: TrainingSettings) -> None:
        n_words, negatives = len(softmax.bias), settings.softmax.negatives
        self.softmax, self.sampler = softmax, None
        if settings.softmax.kind == "sampled":
            if negatives > n_words:
                raise SettingsError(
                    f"training.softmax.negatives is {negatives}, but the vocabulary has {n_words} words. Expected at "
                    'most that many: set it lower, or training.softmax.kind to "full".'
                )
            self.sampler = LogUniform(n_words, negatives)
        tables = {"weight": softmax.weight.data, "bias": softmax.bias.data[:, None]}
        self.optimizers = {name: row_optimizer(table, settings.optimizer) for name, table in tables.items()}
        self._sums: list[tuple[Tensor, list[Tensor]]] = []  # rows, and gradients of weight and bias; at most one

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """targets: *Shape:* (2, steps, streams), ids of the vocabulary. seed: the same in all processes."""
        weight, bias = self.softmax.weight.detach(), self.softmax.bias.detach()
        if self.sampler is None:
            rows, index = torch.arange(len(bias), device=targets.device), targets
            of_sample = torch.zeros(len(bias), device=targets.device)
            of_targets = of_sample[targets]
        else:
            sample, n_draws = self.sampler.draw(torch.Generator().manual_seed(seed), targets.device)
            words = group.union(targets)
            in_sample = torch.searchsorted(sample, words).clamp_(max=len(sample) - 1)
            not_sampled = sample[in_sample] != words
            row_of_word = torch.where(not_sampled, len(sample) - 1 + not_sampled.cumsum(0), in_sample)
            word_of_target = torch.searchsorted(words, targets)
            rows, index = torch.cat([sample, words[not_sampled]]), row_of_word[word_of_target]
            of_sample = self.sampler.log_expected(sample, n_draws)
            of_targets = self.sampler.log_expected(words, n_draws)[word_of_target]

        def loss(
            leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
        ) -> Tensor:
            goal, expected = (values[direction, :, part].reshape(-1) for values in (index, of_targets))
            return sampled_loss(top, leaves[0], leaves[1], goal, of_sample, expected, matmul_dtype)

        return Scorer([weight[rows], bias[rows]], loss, rows)

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """Add the gradients of a batch, of its scorer's leaves. The sums have the rows of all batches."""
        self._sums.append((scorer.rows, gradients))
        if len(self._sums) > 1:
            rows, index = torch.unique(torch.cat([rows for rows, _ in self._sums]), return_inverse=True)
            sums = []
            for parts in zip(*(gradients for _, gradients in self._sums)):
                total = parts[0].new_zeros(len(rows), *parts[0].shape[1:])
                sums.append(total.index_add_(0, index, torch.cat(parts)))
            self._sums = [(rows, sums)]

    def gradients(self) -> list[Tensor]:
        """Return the sums since the last update. The caller may change them in place."""
        return self._sums[0][1]

    def update(self, gradients: Sequence[Tensor], rate: float, step: int) -> None:
        """Apply what `gradients` returned, and forget the sums. step: from 1."""
        rows, _ = self._sums.pop()
        for optimizer, gradient in zip(self.optimizers.values(), gradients):
            optimizer.update(rows, gradient.reshape(len(rows), -1), rate, step)

    def arrays(self) -> dict[str, np.ndarray]:
        both = self.optimizers.items()
        return {f"{title}/{name}": t.cpu().numpy().copy() for title, rows in both for name, t in rows.state().items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for title, rows in self.optimizers.items():
            for name, tensor in rows.state().items():
                tensor.copy_(torch.from_numpy(np.array(arrays[f"{title}/{name}"])))
