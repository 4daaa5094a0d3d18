"""What weight decay changes, and the order of the parameters in a checkpoint."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.settings.sections import OptimizerSettings
from spacy_elmo.pretraining.training.optimizers import dense_optimizer

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
