"""The protocols of the losses of pretraining: a softmax with its optimizer, and what scores a batch with it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from .distributed import Group


class Scorer(Protocol):
    """Computes the losses of one batch. Any number of threads may call it at the same time."""

    def leaves(self) -> list[Tensor]:
        """Return the softmax's weights as new leaves of autograd, so that each thread gets gradients of its part."""

    def loss(
        self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
    ) -> Tensor:
        """Return the sum of -log p(target), in nats, over one direction of some streams.

        leaves: as `leaves` returned them.
        top: *Shape:* (steps * streams of the part, projection_dim), outputs of the top LSTM layer.
        direction: 0 forward, 1 backward.
        part: the streams.
        matmul_dtype: type of the matrix multiplications.
        """


class Objective(Protocol):
    """A softmax with its optimizer.

    For each update the trainer calls, in this order: `scorer` and `add` for each batch; `gradients`, the sums over the
    batches; `replace` with these sums over all processes, clipped; and `update`. If the sums are not finite, it calls
    neither `replace` nor `update`.
    """

    def scorer(self, targets: Tensor, seed: int, group: Group) -> Scorer:
        """Return what computes the losses of a batch.

        targets: *Shape:* (2, steps, streams), ids of the vocabulary.
        seed: of the negatives; the same in all processes.
        group: the processes of the run.
        """

    def add(self, scorer: Scorer, gradients: list[Tensor]) -> None:
        """Add the gradients of a batch.

        scorer: as `scorer` returned it for the batch.
        gradients: of the scorer's leaves, in their order.
        """

    def gradients(self) -> list[Tensor]:
        """Return the sums of the gradients since the last update. The caller may change them in place."""

    def replace(self, gradients: Sequence[Tensor]) -> None:
        """Use other gradients for the update. gradients: of the shapes that `gradients` returned."""

    def update(self, rate: float, step: int) -> None:
        """Apply the gradients, and forget them.

        rate: learning rate.
        step: number of the update, from 1.
        """

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the optimizer's state as arrays by their names."""

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Set the optimizer's state. arrays: as `arrays` returned them."""
