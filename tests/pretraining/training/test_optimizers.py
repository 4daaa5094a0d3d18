"""Updates against their formulas, what weight decay changes, the order of parameters in a checkpoint, and clipping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.config import OptimizerSettings
from spacy_elmo.pretraining.optimizers import clip, dense_optimizer, row_optimizer, set_rate

OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 20, 16, 2, 3.0, 3.0, True)


def bilm() -> BiLM:
    torch.manual_seed(0)
    made = BiLM(OPTIONS)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_weight_decay_changes_all_but_the_biases(name: str) -> None:
    """Without gradients an update is w - rate * decay * w."""
    network = bilm()
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    settings = OptimizerSettings(name, learning_rate=0.5, weight_decay=0.2)
    optimizer = dense_optimizer(network.named_parameters(), settings)
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    biases = set()
    for key, parameter in network.named_parameters():
        factor = 1.0 if "bias" in key else 1 - 0.5 * 0.2
        torch.testing.assert_close(parameter.detach(), before[key] * factor, rtol=1e-6, atol=0)
        biases |= {key} if factor == 1 else set()
    assert {f"lstm.layers.{k}.bias" for k in (0, 1)} <= biases  # (2, 4 dim): two axes, as a matrix has
    assert len(biases) == 2 + 2 + 2 * 1 + 1  # LSTM layers, convolutions, a highway layer's two parts, projection


@pytest.mark.parametrize("name", ["adamw", "muon", "adagrad"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_checkpoints_count_the_parameters_as_before(name: str, decay: float) -> None:
    """AdamW and Muon: matrices and what else has two axes first; Adagrad: the network's order."""
    parameters = list(bilm().named_parameters())
    optimizer = dense_optimizer(iter(parameters), OptimizerSettings(name=name, weight_decay=decay))
    got = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    expected: list[nn.Parameter] = [parameter for _, parameter in parameters]
    if name != "adagrad":
        expected = [p for p in expected if p.dim() > 1] + [p for p in expected if p.dim() <= 1]
    assert list(map(id, got)) == list(map(id, expected))


# AdamW's constants are unlike the defaults of torch; so small a gradient and so large an epsilon that each counts
SETTINGS = OptimizerSettings(
    "adamw", learning_rate=0.1, beta1=0.7, beta2=0.8, epsilon=0.01, weight_decay=0.3, initial_accumulator=1e-4
)
GRADIENTS = np.array([[0.02, -0.03, 3.0], [0.05, 0.01, -1.0]])


def adam(decay: float) -> np.ndarray:
    """Two updates of AdamW (Loshchilov and Hutter 2019, algorithm 2) from weights of 1, with rates 0.1 and 0.2."""
    w, first, second = np.ones(3), np.zeros(3), np.zeros(3)
    for t, (rate, g) in enumerate(zip((0.1, 0.2), GRADIENTS), 1):
        w *= 1 - rate * decay
        first, second = 0.7 * first + 0.3 * g, 0.8 * second + 0.2 * g**2
        w -= rate * first / (1 - 0.7**t) / (np.sqrt(second / (1 - 0.8**t)) + 0.01)
    return w


def adagrad() -> np.ndarray:
    w, squares = np.ones(3), np.full(3, 1e-4)
    for rate, g in zip((0.1, 0.2), GRADIENTS):
        squares += g**2
        w -= rate * g / np.sqrt(squares)
    return w


@pytest.mark.parametrize("name", ["adamw", "adagrad"])
def test_updates_of_all_weights(name: str) -> None:
    weight = nn.Parameter(torch.ones(1, 3))
    optimizer = dense_optimizer([("weight", weight)], replace(SETTINGS, name=name))
    for rate, gradient in zip((0.1, 0.2), GRADIENTS):
        set_rate(optimizer, rate)
        weight.grad = torch.from_numpy(gradient[None]).float()
        optimizer.step()
    expected = adam(0.3) if name == "adamw" else adagrad()
    np.testing.assert_allclose(weight.detach().numpy()[0], expected, rtol=1e-5)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("name", ["adamw", "adagrad"])
def test_updates_of_rows(name: str) -> None:
    table = torch.ones(4, 3)
    updates = row_optimizer(table, replace(SETTINGS, name=name))
    for step, (rate, gradient) in enumerate(zip((0.1, 0.2), GRADIENTS), 1):
        updates.update(torch.tensor([2]), torch.from_numpy(gradient[None]).float(), rate, step)
    np.testing.assert_allclose(table[2].numpy(), adam(0.0) if name == "adamw" else adagrad(), rtol=1e-5)
    assert (table[[0, 1, 3]] == 1).all()


def test_rows_have_the_epsilon_of_torchs_adagrad() -> None:
    settings, gradient = OptimizerSettings("adagrad", initial_accumulator=0.0), torch.tensor([[1e-10, 3e-10]])
    weight, table = nn.Parameter(torch.ones(1, 2)), torch.ones(1, 2)
    optimizer = dense_optimizer([("weight", weight)], settings)
    set_rate(optimizer, 0.5)
    weight.grad = gradient.clone()
    optimizer.step()
    row_optimizer(table, settings).update(torch.tensor([0]), gradient, 0.5, 1)
    torch.testing.assert_close(table, weight.detach())
    torch.testing.assert_close(table, torch.tensor([[0.75, 1 - 0.5 * 0.75]]), rtol=1e-5, atol=0)


def test_the_norm_of_all_gradients_is_clipped() -> None:
    gradients = [torch.tensor([[3.0], [0.0]]), torch.tensor([4.0])]
    assert clip(gradients, 5.0) == 5.0
    assert (gradients[0][0], gradients[1]) == (3.0, 4.0)
    assert clip(gradients, 0.5) == 5.0
    torch.testing.assert_close(torch.cat([gradients[0][0], gradients[1]]), torch.tensor([0.3, 0.4]), rtol=1e-6, atol=0)
