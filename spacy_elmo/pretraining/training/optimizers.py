"""The optimisers: torch's for what every step changes, row by row for the softmax."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..settings.sections import OptimizerSettings
from .row_updates import AdagradRows, AdamRows

ADAGRAD_EPSILON = 1e-10  # torch's; TensorFlow's has none


def dense_optimizer(parameters: Sequence[nn.Parameter], settings: OptimizerSettings) -> torch.optim.Optimizer:
    """For the biLM's parameters; weight decay is for matrices alone."""
    if settings.name == "adagrad":
        return torch.optim.Adagrad(
            parameters, lr=settings.learning_rate, initial_accumulator_value=settings.initial_accumulator
        )
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    betas = (settings.beta1, settings.beta2)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)


def row_optimizer(table: Tensor, settings: OptimizerSettings) -> AdamRows | AdagradRows:
    """For a table of which a step changes some rows."""
    if settings.name == "adagrad":
        return AdagradRows(table, settings.initial_accumulator, ADAGRAD_EPSILON)
    return AdamRows(table, settings.beta1, settings.beta2, settings.epsilon)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """The learning rate of all groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """Its state as plain arrays: `number/name`."""
    return {
        f"{number}/{name}": torch.as_tensor(value).cpu().numpy().copy()
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def optimizer_forms(optimizer: torch.optim.Optimizer) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Type and shape of each array that optimizer_arrays gives after a first update."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if isinstance(optimizer, torch.optim.Adagrad):  # it has its state from the beginning
        return {name: (array.dtype, array.shape) for name, array in optimizer_arrays(optimizer).items()}
    forms: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    for number, parameter in enumerate(parameters):
        for name, shape in (("step", ()), ("exp_avg", parameter.shape), ("exp_avg_sq", parameter.shape)):
            forms[f"{number}/{name}"] = np.dtype(np.float32), tuple(shape)
    return forms


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: Mapping[str, np.ndarray]) -> None:
    """Go to where optimizer_arrays was called."""
    state: dict[int, dict[str, Any]] = {}
    for path, array in arrays.items():
        number, _, name = path.partition("/")
        state.setdefault(int(number), {})[name] = torch.from_numpy(np.array(array))
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def clip(gradients: Sequence[Tensor], bound: float) -> float:
    """Scale all gradients in place so that their global norm is at most `bound`. Returns the norm before."""
    norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
    norm = float(torch.linalg.vector_norm(norms))
    if norm > bound:
        torch._foreach_mul_(list(gradients), bound / (norm + 1e-6))
    return norm
