"""An optimizer's update of a torch network inside a Thinc shim."""

from collections.abc import Callable
from typing import cast

from thinc.api import Optimizer
from thinc.types import FloatsXd
from thinc.util import torch2xp, xp2torch
from torch import nn


def apply_gradients(
    network: nn.Module, shim_id: int, optimizer: Optimizer, learn_rate_factor: float, changed: Callable[[], None]
) -> None:
    """Apply the gradients of a network's weights, and clear them.

    network: the network. Weights without a gradient are left as they are.
    shim_id: id of the shim that holds the network. An optimizer stores its state under this id and the weight's name.
    optimizer: Thinc's optimizer, or any callable with the same signature.
    learn_rate_factor: factor of the optimizer's learning rate.
    changed: called after each weight that was updated.
    """
    for name, parameter in network.named_parameters():
        if parameter.grad is not None:
            weights = cast(FloatsXd, torch2xp(parameter.data))
            gradient = cast(FloatsXd, torch2xp(parameter.grad))
            updated, _ = optimizer((shim_id, name), weights, gradient, lr_scale=learn_rate_factor)
            if updated is not weights:  # Thinc's optimizers write into `weights`, others may not
                parameter.data.copy_(xp2torch(updated, device=parameter.device))
            parameter.grad = None
            changed()
