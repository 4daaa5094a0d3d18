"""The loss by the adaptive softmax."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ...modules.softmax.adaptive import AdaptiveSoftmax, adaptive_losses
from ..settings.sections import OptimizerSettings
from .distributed import Group
from .objective import Scorer
from .optimizers import dense_optimizer, optimizer_arrays, restore_optimizer, set_rate


class _AdaptiveScorer:
    def __init__(self, softmax: AdaptiveSoftmax, targets: Tensor) -> None:
        self.softmax, self.targets = softmax, targets

    def leaves(self) -> list[Tensor]:
        return [p.detach().requires_grad_() for p in self.softmax.parameters()]

    def loss(
        self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
    ) -> Tensor:
        targets = self.targets[direction, :, part].reshape(-1)
        return adaptive_losses(leaves, self.softmax.cutoffs, top, targets, matmul_dtype).sum()


class AdaptiveObjective:
    """The adaptive softmax. Each update changes all of its parameters.

    softmax: changed in place.
    settings: of the optimizer. Weight decay is not used.
    """

    def __init__(self, softmax: AdaptiveSoftmax, settings: OptimizerSettings) -> None:
        self.softmax, self.parameters = softmax, list(softmax.parameters())
        self.optimizer = dense_optimizer(softmax.named_parameters(), replace(settings, weight_decay=0.0))
        self._sums: list[Tensor] = []

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """Return what computes the losses of a batch; `seed` and `group` are not used."""
        return _AdaptiveScorer(self.softmax, targets)

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """Add the gradients of a batch, in the order of the softmax's parameters."""
        self._sums = [a + b for a, b in zip(self._sums, gradients)] if self._sums else list(gradients)

    def gradients(self) -> list[Tensor]:
        """Return the sums of the gradients, in the order of the softmax's parameters."""
        return self._sums

    def replace(self, gradients: Sequence[Tensor]) -> None:
        """Use other gradients for the update. gradients: in the order of the softmax's parameters."""
        self._sums = list(gradients)

    def update(self, rate: float, step: int) -> None:
        """Apply the gradients, and forget them.

        rate: learning rate.
        step: not used, since the optimizer counts its updates.
        """
        for parameter, gradient in zip(self.parameters, self._sums):
            parameter.grad = gradient
        self._sums = []
        set_rate(self.optimizer, rate)
        self.optimizer.step()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the optimizer's state as arrays by their names."""
        return optimizer_arrays(self.optimizer)

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the optimizer's state. arrays: as `arrays` returned them."""
        restore_optimizer(self.optimizer, arrays)
