"""An optimizer's update of a torch network inside a Thinc shim."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from thinc.api import Optimizer
from thinc.types import FloatsXd
from thinc.util import torch2xp, xp2torch
from torch import nn


def apply_gradients(
    network: nn.Module, shim_id: int, optimizer: Optimizer, learn_rate_factor: float, changed: Callable[[], None]
) -> None:
    """Apply the gradients of a network's weights, and clear them. The optimizer's L2 is not used for biases.

    The optimizer's averages begin with the weights as they are before their first update. Thinc would begin with 0, and
    after that update an average would be 9/11 of the weight: its decay is (1 + t) / (10 + t) after t updates.

    The LSTM adds 1 to the stored bias of its forget gate, so L2 would pull the sum to 1, where it pulls to 0 in
    AllenNLP, which stores the sum.

    network: the network. Weights without a gradient are left as they are.
    shim_id: id of the shim that holds the network. An optimizer stores its state under this id and the weight's name.
    optimizer: Thinc's optimizer, or any callable with the same signature. The L2 of another callable is its own affair.
    learn_rate_factor: factor of the optimizer's learning rate.
    changed: called after each weight that was updated.
    """
    for name, parameter in network.named_parameters():
        if parameter.grad is not None:
            weights = cast(FloatsXd, torch2xp(parameter.data))
            gradient = cast(FloatsXd, torch2xp(parameter.grad))
            _begin_average(optimizer, (shim_id, name), weights)
            with _l2_of(optimizer, name):
                updated, _ = optimizer((shim_id, name), weights, gradient, lr_scale=learn_rate_factor)
            if updated is not weights:  # Thinc's optimizers write into `weights`, others may not
                parameter.data.copy_(xp2torch(updated, device=parameter.device))
            parameter.grad = None
            changed()


def _begin_average(optimizer: Optimizer, key: tuple[int, str], weights: FloatsXd) -> None:
    """Have the average of a weight begin with its value, if the optimizer keeps averages and has none of it yet."""
    if isinstance(optimizer, Optimizer) and optimizer.averages is not None and key not in optimizer.averages:
        optimizer.averages[key] = weights.copy()


@contextmanager
def _l2_of(optimizer: Optimizer, name: str) -> Iterator[None]:
    """Have the optimizer use no L2 while the weight of this name is updated, if it is a bias."""
    if not (name.endswith("bias") and isinstance(optimizer, Optimizer)):
        yield
        return
    before, optimizer.L2 = optimizer.L2, 0.0
    try:
        yield
    finally:
        optimizer.L2 = before
