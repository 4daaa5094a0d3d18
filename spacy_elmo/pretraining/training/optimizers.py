"""Optimizers: torch's for the parameters that each update changes, and row optimizers for the softmax."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..settings.sections import OptimizerSettings
from .muon import MuonAdamW, is_matrix
from .row_updates import AdagradRows, AdamRows

ADAGRAD_EPSILON = 1e-10  # torch's default; TensorFlow's Adagrad has no epsilon


def dense_optimizer(
    named: Iterable[tuple[str, nn.Parameter]],
    settings: OptimizerSettings,
    matmul_dtype: torch.dtype = torch.float32,
) -> torch.optim.Optimizer:
    """Return an optimizer of parameters that each update changes completely.

    named: what it changes, with the names that torch's modules give. Weight decay is applied to all but the biases: the
        LSTM adds 1 to the stored bias of its forget gate, so decay would pull the sum to 1.
    settings: name and hyperparameters.
    matmul_dtype: type of Muon's matrix multiplications.
    """
    if settings.name == "adagrad":
        return torch.optim.Adagrad(
            [parameter for _, parameter in named],
            lr=settings.learning_rate,
            initial_accumulator_value=settings.initial_accumulator,
        )
    # a checkpoint stores the parameters' state by their numbers in this order
    ordered = sorted(named, key=lambda pair: pair[1].dim() <= 1)
    groups = [
        {"params": [parameter for _, parameter in run], "weight_decay": 0.0 if is_bias else settings.weight_decay}
        for is_bias, run in groupby(ordered, key=lambda pair: pair[0].endswith("bias"))
    ]
    if settings.name == "muon":
        return MuonAdamW(groups, [pair for pair in ordered if is_matrix(pair[0])], settings, matmul_dtype)
    betas = (settings.beta1, settings.beta2)
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)


def row_optimizer(table: Tensor, settings: OptimizerSettings) -> AdamRows | AdagradRows:
    """Return an optimizer of a table of which each update changes some rows only.

    table: *Shape:* (rows, width), changed in place.
    settings: name and hyperparameters. Weight decay is not used.
    """
    if settings.name == "adagrad":
        return AdagradRows(table, settings.initial_accumulator, ADAGRAD_EPSILON)
    return AdamRows(table, settings.beta1, settings.beta2, settings.epsilon)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all parameter groups."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """Return the state of an optimizer as arrays.

    Returns the arrays by their names, like "3/exp_avg": the parameter's number in the optimizer and torch's name.
    """
    return {
        f"{number}/{name}": torch.as_tensor(value).cpu().numpy().copy()
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def optimizer_forms(optimizer: torch.optim.Optimizer) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return the type and shape of each array that `optimizer_arrays` returns after at least one update."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if isinstance(optimizer, torch.optim.Adagrad):  # Adagrad's state exists before the first update
        return {name: (array.dtype, array.shape) for name, array in optimizer_arrays(optimizer).items()}
    forms: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    matrices = {id(matrix) for _, matrix in optimizer.matrices} if isinstance(optimizer, MuonAdamW) else set()
    for number, parameter in enumerate(parameters):
        shape = tuple(parameter.shape)
        muon, adamw = {"step": (), "momentum_buffer": shape}, {"step": (), "exp_avg": shape, "exp_avg_sq": shape}
        for name, own in (muon if id(parameter) in matrices else adamw).items():
            forms[f"{number}/{name}"] = np.dtype(np.float32), own
    return forms


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: Mapping[str, np.ndarray]) -> None:
    """Set the state of an optimizer.

    optimizer: of the same settings and parameters as the one that was saved.
    arrays: as `optimizer_arrays` returned them.
    """
    state: dict[int, dict[str, Any]] = {}
    for path, array in arrays.items():
        number, _, name = path.partition("/")
        state.setdefault(int(number), {})[name] = torch.from_numpy(np.array(array))
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def clip(gradients: Sequence[Tensor], bound: float) -> float:
    """Scale gradients in place so that their global norm, the L2 norm of all of them together, is at most `bound`.

    gradients: of any shapes.
    bound: largest norm.

    Returns the norm before scaling.
    """
    norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
    norm = float(torch.linalg.vector_norm(norms))
    if norm > bound:
        torch._foreach_mul_(list(gradients), bound / (norm + 1e-6))
    return norm
