"""An exponential average of a model's weights, which is evaluated and saved in their place.

Polyak and Juditsky 1992 averaged the weights of stochastic approximation; here the share of older weights falls.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from ..model.language_model import LanguageModel

Tensors = tuple[Tensor, ...] | list[Tensor]


def average_of(model: LanguageModel, horizon: float) -> AveragedModel:
    """Return an average of a model's weights, for `update_average`. It holds a copy of them.

    horizon: number of updates after which a weight's share in the average has fallen to 1 / e, above 0. During the
        first horizon the average is the plain mean, so that the weights of the start do not count more.
    """

    @torch.no_grad()
    def add(averages: Tensors, weights: Tensors, count: Tensor | int) -> None:
        share = min(1.0, max(1 / (int(count) + 1), 1 / horizon))
        torch._foreach_lerp_(averages, weights, share)

    return AveragedModel(_modules(model), multi_avg_fn=add)


def update_average(average: AveragedModel, model: LanguageModel) -> None:
    """Add the weights of a model to an average that `average_of` made of it. Call it after each update."""
    average.update_parameters(_modules(model))


def averaged_model(average: AveragedModel, model: LanguageModel) -> LanguageModel:
    """Return a model of the averages; the model itself if nothing was added to them so far."""
    if not average.n_averaged:
        return model
    modules: Any = average.module
    return LanguageModel(modules["bilm"], modules["softmax"], model.vocabulary)


def _modules(model: LanguageModel) -> nn.ModuleDict:
    return nn.ModuleDict({"bilm": model.bilm, "softmax": model.softmax})
