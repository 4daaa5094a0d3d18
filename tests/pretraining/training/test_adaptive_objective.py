"""Updates of the adaptive softmax: rate, weight decay, and sums of gradients."""

import torch

from spacy_elmo.modules.softmax import AdaptiveSoftmax
from spacy_elmo.pretraining.config import OptimizerSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.objectives import AdaptiveObjective


def objective_of(settings: OptimizerSettings) -> tuple[AdaptiveSoftmax, AdaptiveObjective]:
    softmax = AdaptiveSoftmax(20, 16, [5, 12])
    softmax.reset_parameters(generator=torch.Generator().manual_seed(0))
    return softmax, AdaptiveObjective(softmax, settings)


def test_an_update_adds_up_batches_and_forgets_them() -> None:
    """Adagrad from sums of 1: w - rate * g / sqrt(1 + g ** 2)."""
    softmax, objective = objective_of(OptimizerSettings("adagrad", learning_rate=9.0))
    before = [parameter.detach().double() for parameter in softmax.parameters()]
    scorer = objective.scorer(torch.zeros(2, 1, 1, dtype=torch.int64), 0, Group())
    for value in (2.0, 1.0):
        objective.add(scorer, [torch.full_like(parameter, value) for parameter in softmax.parameters()])
    objective.update(0.5, step=1)
    for parameter, old in zip(softmax.parameters(), before):
        torch.testing.assert_close(parameter.detach().double(), old - 0.5 * 3 / 10**0.5, rtol=0, atol=1e-6)
    middle = [parameter.detach().double() for parameter in softmax.parameters()]
    objective.add(scorer, [torch.full_like(parameter, -4.0) for parameter in softmax.parameters()])
    objective.update(0.25, step=2)
    for parameter, old in zip(softmax.parameters(), middle):
        torch.testing.assert_close(parameter.detach().double(), old + 0.25 * 4 / 26**0.5, rtol=0, atol=1e-6)


def test_weight_decay_is_not_used() -> None:
    softmax, objective = objective_of(OptimizerSettings(weight_decay=0.5))
    before = [parameter.detach().clone() for parameter in softmax.parameters()]
    objective.add(
        objective.scorer(torch.zeros(2, 1, 1, dtype=torch.int64), 0, Group()), [torch.zeros_like(p) for p in before]
    )
    objective.update(1.0, step=1)
    assert all(torch.equal(a, b) for a, b in zip(before, softmax.parameters()))
