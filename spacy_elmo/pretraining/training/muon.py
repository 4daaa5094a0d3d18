"""Muon (Jordan et al. 2024) for the biLM's matrices, AdamW for all else.

An update of AdamW is large in the few directions that most gradients share. An update of Muon is the matrix nearest to
the mean gradient whose singular values are all about 1, so rare directions are learned as fast as common ones.
https://kellerjordan.github.io/posts/muon/
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...modules.lstm.cell import Gates
from ..settings.sections import OptimizerSettings

# of Jordan's post: the polynomial a x + b x^3 + c x^5 brings singular values near 1 in few iterations, not exactly to 1
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
_LEAST_NORM = 1e-7  # so that a gradient of zeros is divided by something
# Liu et al. 2025, "Muon is Scalable for LLM Training", 2.2: updates as large as AdamW's usually are
_RMS = 0.2
_MATRICES = ("lstm.", "char_cnn.highways.", "char_cnn.projection.")
_GATED = ("input_weight", "recurrent_weight")


def is_matrix(name: str) -> bool:
    """Tell whether Muon updates a parameter: the matrices of the LSTMs, the highway layers and the CNN's projection.

    Convolutions stay with AdamW: Muon gained nothing there (docs/pretraining.md).

    name: that torch's modules give, like "lstm.layers.0.projection".
    """
    return name.startswith(_MATRICES) and not name.endswith("bias")


class MuonAdamW(torch.optim.AdamW):
    """AdamW in which Muon updates the matrices. Weight decay is the same for both: w becomes w - rate * decay * w.

    Each gate of each direction is a matrix of its own: the file's arrays hold several gates for speed alone.

    groups: AdamW's parameter groups.
    matrices: names and parameters that Muon updates; they are in `groups`, too.
    settings: hyperparameters.
    matmul_dtype: type of the matrix multiplications.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        matrices: Sequence[tuple[str, nn.Parameter]],
        settings: OptimizerSettings,
        matmul_dtype: torch.dtype,
    ) -> None:
        betas = (settings.beta1, settings.beta2)
        super().__init__(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=True)
        self.matrices, self.momentum, self.matmul_dtype = list(matrices), settings.momentum, matmul_dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # no loss
        """Make one update from the parameters' gradients. closure: not used."""
        gradients = [parameter.grad for _, parameter in self.matrices]
        for _, parameter in self.matrices:
            parameter.grad = None  # AdamW leaves out a parameter without a gradient
        super().step()
        groups = {id(parameter): group for group in self.param_groups for parameter in group["params"]}
        for members in self._together():
            given = [
                (name, parameter, gradient)
                for number, name, parameter in members
                if (gradient := gradients[number]) is not None
            ]
            for _, parameter, gradient in given:
                parameter.grad = gradient
            ahead = [blocks(name, self._ahead(parameter, gradient)) for name, parameter, gradient in given]
            for (name, parameter, _), direction in zip(given, self._directions(ahead)):
                group, view = groups[id(parameter)], blocks(name, parameter)
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                view.add_(direction, alpha=-group["lr"] * _RMS * max(view.shape[-2:]) ** 0.5)

    def _together(self) -> list[list[tuple[int, str, nn.Parameter]]]:
        """Return the numbers, names and parameters of the matrices, in groups whose directions are computed together.

        On a GPU a group has all matrices of one shape, which needs fewer calls. Elsewhere each has a group of its own:
        copying them together would take time and memory.
        """
        groups: dict[object, list[tuple[int, str, nn.Parameter]]] = {}
        for number, (name, parameter) in enumerate(self.matrices):
            key = blocks(name, parameter).shape[-2:] if parameter.is_cuda else number
            groups.setdefault(key, []).append((number, name, parameter))
        return list(groups.values())

    def _directions(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Return the directions of a group's values, *Shape:* as the values, which `blocks` returned."""
        if len(values) == 1:
            return [orthogonal(values[0].flatten(0, -3), self.matmul_dtype).view_as(values[0])]
        if not values:
            return []
        stacks = [one.flatten(0, -3) for one in values]
        parts = orthogonal(torch.cat(stacks), self.matmul_dtype).split([len(stack) for stack in stacks])
        return [part.view_as(one) for part, one in zip(parts, values)]

    def _ahead(self, parameter: nn.Parameter, gradient: Tensor) -> Tensor:
        """Add a gradient to the mean of the gradients, and return what Nesterov's momentum makes of both."""
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["step"] = torch.zeros(())  # not used, but AdamW reads no state without it
            state["momentum_buffer"] = torch.zeros_like(gradient)
        mean: Tensor = state["momentum_buffer"].lerp_(gradient, 1 - self.momentum)
        return gradient.lerp(mean, self.momentum)

    def rounding(self) -> int:
        """Return a checksum of directions of fixed matrices. Processes with different ones would get other weights."""
        checksum = 0
        for members in self._together():
            values = []
            for _, name, parameter in members:
                fixed = np.random.default_rng(0).standard_normal(parameter.shape, np.float32)
                values.append(blocks(name, torch.from_numpy(fixed).to(parameter.device)))
            for direction in self._directions(values):
                checksum = zlib.crc32(direction.contiguous().cpu().numpy().tobytes(), checksum)
        return checksum


def blocks(name: str, values: Tensor) -> Tensor:
    """Return a view of a parameter as matrices.

    name: of the parameter, from which its kind is known.
    values: of the parameter's shape.

    Returns *Shape:* (..., rows, columns), the rows not more than the columns. At least one axis stands before them.
    """
    if name.endswith(_GATED):  # (directions, width, gates * dim)
        values = values.unflatten(2, (len(Gates._fields), -1)).transpose(1, 2)
    values = values[None] if values.dim() == 2 else values
    return values if values.shape[-2] <= values.shape[-1] else values.mT


def orthogonal(matrices: Tensor, matmul_dtype: torch.dtype) -> Tensor:
    """Return matrices with the same singular vectors, and singular values of 0.6 to 1.3.

    The iteration of Newton and Schulz with the coefficients of Jordan et al. 2024. A singular value below a thousandth
    of the matrix's norm grows, but not so far.

    matrices: *Shape:* (matrices, rows, columns), the rows not more than the columns.
    matmul_dtype: type of the matrix multiplications.

    Returns *Shape:* as `matrices`, of their type.
    """
    norms = torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True)
    x = (matrices / norms.clamp_min(_LEAST_NORM)).to(matmul_dtype)
    for _ in range(_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    result: Tensor = x.to(matrices.dtype)
    return result
