"""Optimizers: torch's for the parameters that each update changes, and row optimizers for the softmax."""

import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..kernels import address
from ..modules.loops import loops
from ..modules.lstm_cell import Gates
from .config import OptimizerSettings, ScheduleSettings


def rate_at(schedule: ScheduleSettings, step: int, total: int) -> float:
    """Return the factor of the learning rate. step: from 0 to total - 1."""
    rise = min(1.0, (step + 1) / max(1, schedule.warmup_steps))
    if schedule.kind == "constant":
        return rise
    left = min(1.0, max(0.0, (total - step) / max(1.0, schedule.decay_share * total)))
    if schedule.kind == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2
    return rise * (schedule.final_share + (1 - schedule.final_share) * left)


class AdamRows:
    """Adam (Kingma and Ba 2015) for rows of a table, *Shape:* (all rows, width), float32, changed in place."""

    def __init__(self, table: Tensor, beta1: float, beta2: float, epsilon: float = 1e-8) -> None:
        self.table, self.beta1, self.beta2, self.epsilon = table, beta1, beta2, epsilon
        self.first, self.second = torch.zeros_like(table), torch.zeros_like(table)

    def state(self) -> dict[str, Tensor]:
        return {"first": self.first, "second": self.second}

    @torch.no_grad()
    def update(self, rows: Tensor, d_rows: Tensor, rate: float, step: int) -> None:
        """Update distinct rows with their gradients, *Shape:* (rows, width). step: from 1."""
        size, correction = rate / (1 - self.beta1**step), math.sqrt(1 - self.beta2**step)
        library = loops(self.table)
        if library is not None:
            given = _given(rows.contiguous(), d_rows.contiguous(), self.table, self.first, self.second)
            library.adam_rows(*given, size, correction, self.beta1, self.beta2, self.epsilon)
            return
        first = self.first[rows].lerp_(d_rows, 1 - self.beta1)
        second = self.second[rows].mul_(self.beta2).addcmul_(d_rows, d_rows, value=1 - self.beta2)
        self.first[rows], self.second[rows] = first, second
        self.table[rows] -= size * first / (second.sqrt() / correction + self.epsilon)


class AdagradRows:
    """Adagrad (Duchi et al. 2011), as `AdamRows`. epsilon: torch's default; TensorFlow's Adagrad has none."""

    def __init__(self, table: Tensor, initial_accumulator: float, epsilon: float = 1e-10) -> None:
        self.table, self.epsilon = table, epsilon
        self.squares = torch.full_like(table, initial_accumulator)

    def state(self) -> dict[str, Tensor]:
        return {"squares": self.squares}

    @torch.no_grad()
    def update(self, rows: Tensor, d_rows: Tensor, rate: float, step: int) -> None:
        library = loops(self.table)
        if library is not None:
            given = _given(rows.contiguous(), d_rows.contiguous(), self.table, self.squares)
            library.adagrad_rows(*given, rate, self.epsilon)
            return
        squares = self.squares[rows].addcmul_(d_rows, d_rows)
        self.squares[rows] = squares
        self.table[rows] -= rate * d_rows / (squares.sqrt() + self.epsilon)


def _given(rows: Tensor, d_rows: Tensor, table: Tensor, *state: Tensor) -> list[int]:
    """Sizes and addresses, as the compiled loops take them."""
    n, width = len(rows), table.shape[1]
    arrays = [address("table or state", array, torch.float32, tuple(table.shape)) for array in (table, *state)]
    given = [address("rows", rows, torch.int64, (n,)), address("d_rows", d_rows, torch.float32, (n, width))]
    return [n, width, *given, *arrays]


# of Jordan's post: the polynomial a x + b x^3 + c x^5 brings singular values near 1 in few iterations, not exactly to 1
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_LEAST_NORM = 1e-7  # so that a gradient of zeros is divided by something
# Liu et al. 2025, "Muon is Scalable for LLM Training", 2.2: updates as large as AdamW's usually are
_RMS = 0.2
_MATRICES = ("lstm.", "char_cnn.highways.", "char_cnn.projection.")
_GATED = ("input_weight", "recurrent_weight")


def is_matrix(name: str) -> bool:
    """Tell whether Muon updates a parameter: not convolutions, where it gained nothing (docs/pretraining.md)."""
    return name.startswith(_MATRICES) and not name.endswith("bias")


Members = list[tuple[str, nn.Parameter]]


class MuonAdamW(torch.optim.AdamW):
    """AdamW in which Muon updates the matrices. Weight decay is the same for both: w becomes w - rate * decay * w.

    Each gate of each direction is a matrix of its own: the file's arrays hold several gates for speed alone.
    """

    def __init__(
        self, groups: list[dict[str, Any]], matrices: Members, settings: OptimizerSettings, matmul_dtype: torch.dtype
    ) -> None:
        betas = (settings.beta1, settings.beta2)
        super().__init__(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)
        self.matrices, self.momentum, self.matmul_dtype = matrices, settings.momentum, matmul_dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # no loss
        gradients = {name: parameter.grad for name, parameter in self.matrices}
        for _, parameter in self.matrices:
            parameter.grad = None  # AdamW leaves out a parameter without a gradient
        super().step()
        groups = {id(parameter): group for group in self.param_groups for parameter in group["params"]}
        for members in self._together():
            given = [(name, parameter, g) for name, parameter in members if (g := gradients[name]) is not None]
            for _, parameter, gradient in given:
                parameter.grad = gradient
            ahead = [blocks(name, self._ahead(parameter, gradient)) for name, parameter, gradient in given]
            for (name, parameter, _), direction in zip(given, self._directions(ahead)):
                group, view = groups[id(parameter)], blocks(name, parameter)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                view.add_(direction, alpha=-group["lr"] * _RMS * max(view.shape[-2:]) ** 0.5)

    def _together(self) -> list[Members]:
        """Groups: on a GPU all matrices of one shape, for fewer calls; elsewhere each alone, for fewer copies."""
        groups: dict[object, Members] = {}
        for name, parameter in self.matrices:
            key = blocks(name, parameter).shape[-2:] if parameter.is_cuda else name
            groups.setdefault(key, []).append((name, parameter))
        return list(groups.values())

    def _directions(self, values: Sequence[Tensor]) -> list[Tensor]:
        if not values:
            return []
        stacks = [one.flatten(0, -3) for one in values]
        together = stacks[0] if len(stacks) == 1 else torch.cat(stacks)
        parts = orthogonal(together, self.matmul_dtype).split([len(stack) for stack in stacks])
        return [part.view_as(one) for part, one in zip(parts, values)]

    def _ahead(self, parameter: nn.Parameter, gradient: Tensor) -> Tensor:
        """Return what Nesterov's momentum makes of a gradient."""
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["step"] = torch.zeros(())  # not used, but AdamW reads no state without it
            state["momentum_buffer"] = torch.zeros_like(gradient)
        mean: Tensor = state["momentum_buffer"].lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(mean, self.momentum)

    def rounding(self) -> int:
        """Return a checksum of directions of fixed matrices: processes with other ones would get other weights."""
        checksum = 0
        for members in self._together():
            values = []
            for name, parameter in members:
                fixed = np.random.default_rng(0).standard_normal(parameter.shape, np.float32)
                values.append(blocks(name, torch.from_numpy(fixed).to(parameter.device)))
            for direction in self._directions(values):
                checksum = zlib.crc32(direction.contiguous().cpu().numpy().tobytes(), checksum)
        return checksum


def blocks(name: str, values: Tensor) -> Tensor:
    """Return a view of a parameter as matrices with no more rows than columns, *Shape:* (..., rows, columns)."""
    if name.endswith(_GATED):  # (directions, width, gates * dim)
        values = values.unflatten(2, (len(Gates._fields), -1)).transpose(1, 2)
    values = values[None] if values.dim() == 2 else values
    return values if values.shape[-2] <= values.shape[-1] else values.mT


def orthogonal(matrices: Tensor, matmul_dtype: torch.dtype) -> Tensor:
    """Return matrices with the same singular vectors, and singular values of 0.6 to 1.3.

    The iteration of Newton and Schulz with the coefficients of Jordan et al. 2024. Singular values below a thousandth
    of the matrix's norm stay smaller.

    matrices: *Shape:* (matrices, rows, columns), the rows not more than the columns.
    """
    norms = torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True)
    x = (matrices / norms.clamp_min(_LEAST_NORM)).to(matmul_dtype)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    result: Tensor = x.to(matrices.dtype)
    return result


def dense_optimizer(
    named: Iterable[tuple[str, nn.Parameter]], settings: OptimizerSettings, matmul_dtype: torch.dtype = torch.float32
) -> torch.optim.Optimizer:
    """Return an optimizer of parameters that each update changes completely.

    Biases do not decay: the LSTM adds 1 to the stored bias of its forget gate, so decay would pull the sum to 1.
    """
    rate, betas = settings.learning_rate, (settings.beta1, settings.beta2)
    if settings.name == "adagrad":
        parameters = [parameter for _, parameter in named]
        return torch.optim.Adagrad(parameters, lr=rate, initial_accumulator_value=settings.initial_accumulator)
    # a checkpoint stores the parameters' state by their numbers in this order
    ordered = sorted(named, key=lambda pair: pair[1].dim() <= 1)
    groups = [
        {"params": [parameter for _, parameter in run], "weight_decay": 0.0 if is_bias else settings.weight_decay}
        for is_bias, run in groupby(ordered, key=lambda pair: pair[0].endswith("bias"))
    ]
    if settings.name == "muon":
        return MuonAdamW(groups, [pair for pair in ordered if is_matrix(pair[0])], settings, matmul_dtype)
    return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=settings.epsilon, fused=True)


def row_optimizer(table: Tensor, settings: OptimizerSettings) -> AdamRows | AdagradRows:
    """Return an optimizer of a table of which each update changes some rows only, without weight decay."""
    if settings.name == "adagrad":
        return AdagradRows(table, settings.initial_accumulator)
    return AdamRows(table, settings.beta1, settings.beta2, settings.epsilon)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """Return an optimizer's state by names like "3/exp_avg": the parameter's number and torch's name."""
    return {
        f"{number}/{name}": torch.as_tensor(value).cpu().numpy().copy()
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def optimizer_forms(optimizer: torch.optim.Optimizer) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return the type and shape of each array that `optimizer_arrays` returns after at least one update."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    matrices = {id(matrix) for _, matrix in optimizer.matrices} if isinstance(optimizer, MuonAdamW) else set()
    forms: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    for number, parameter in enumerate(parameters):
        if isinstance(optimizer, torch.optim.Adagrad):
            names = ["sum"]
        else:
            names = ["momentum_buffer"] if id(parameter) in matrices else ["exp_avg", "exp_avg_sq"]
        forms |= {f"{number}/{name}": (np.dtype(np.float32), tuple(parameter.shape)) for name in names}
        forms[f"{number}/step"] = np.dtype(np.float32), ()
    return forms


def restore_optimizer(optimizer: torch.optim.Optimizer, arrays: Mapping[str, np.ndarray]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for path, array in arrays.items():
        number, _, name = path.partition("/")
        state.setdefault(int(number), {})[name] = torch.from_numpy(np.array(array))
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def clip(gradients: Sequence[Tensor], bound: float) -> float:
    """Scale gradients in place to an L2 norm of all together of at most `bound`; return the norm as it was."""
    norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
    norm = float(torch.linalg.vector_norm(norms))
    if norm > bound:
        torch._foreach_mul_(list(gradients), bound / (norm + 1e-6))
    return norm
