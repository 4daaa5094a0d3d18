"""A weight that is no number gives a training loss that is none, whichever loops run."""

from __future__ import annotations

import math

import pytest
import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import words_to_ids
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.config import SoftmaxSettings, TrainingSettings
from spacy_elmo.pretraining.distributed import Group
from spacy_elmo.pretraining.objectives import RowObjective
from spacy_elmo.pretraining.softmax import Softmax
from spacy_elmo.pretraining.step import Batch, Workers

OPTIONS = BiLMOptions(4, ((1, 3), (2, 4)), 1, "relu", 8, 6, 5, 2, 3.0, 3.0, True)
STEPS, STREAMS, SAMPLES, WORDS = 3, 2, 4, 7
SETTINGS = TrainingSettings(softmax=SoftmaxSettings("sampled", SAMPLES))
NAMES = [name for name, _ in BiLM(OPTIONS).named_parameters()]


def loss_with(damaged: str | None, products: torch.dtype) -> float:
    """The loss where one value of the parameter `damaged` (of the biLM, or "weight", "bias") is NaN."""
    generator = torch.Generator().manual_seed(0)
    bilm = BiLM(OPTIONS)
    bilm.reset_parameters(generator)
    softmax = Softmax(WORDS, OPTIONS.projection_dim)
    softmax.reset_parameters(generator=generator)
    targets = torch.randint(1, WORDS, (2, STEPS, STREAMS), generator=generator)
    words = torch.from_numpy(words_to_ids(["ab", "b", "ba"], OPTIONS.max_characters))
    inputs = torch.tensor([0, 1, 2, 0, 1, 2]).view(STEPS, STREAMS).expand(2, STEPS, STREAMS)
    batch = Batch(words, inputs, targets, torch.ones(STEPS, STREAMS, 1))
    if damaged in ("weight", "bias"):
        softmax.get_parameter(damaged).detach()[targets[1, 0, 0]] = math.nan
    elif damaged is not None:
        parameter = bilm.get_parameter(damaged).detach()
        if damaged.endswith("embedding.weight"):
            parameter[ord("a") + 1, 0] = math.nan
        else:
            parameter.view(-1)[0] = math.nan
    scorer = RowObjective(softmax, SETTINGS).scorer(targets, 0, Group())
    workers = Workers(bilm, 2, products)
    try:
        return workers.gradients(batch, scorer, bilm.lstm.zero_state(STREAMS), 1.0, 0).loss
    finally:
        workers.close()


@pytest.mark.slow
@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("products", [torch.float32, torch.bfloat16], ids=str)
def test_every_weight_that_is_no_number_is_seen(products: torch.dtype) -> None:
    assert math.isfinite(loss_with(None, products))
    for name in [*NAMES, "weight", "bias"]:
        assert math.isnan(loss_with(name, products)), name
