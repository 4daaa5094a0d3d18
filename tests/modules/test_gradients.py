"""Gradients of the character encoder and of the whole network against numeric ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from bilm_cases import bilm_of, character_ids, largest_difference, random_datasets, random_state
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM, LstmState
from spacy_elmo.modules.char_cnn import N_IDS

OPTIONS = BiLMOptions(2, ((1, 2), (2, 2)), 1, "relu", 6, 3, 2, 2, 0.4, 0.2, True)
SENTENCES = [["ab", "naïve", "c"], ["b"]]


def check(module: nn.Module, ids: Tensor, state: LstmState | None = None) -> None:
    """Numeric against analytic gradients of all parameters and of the state, for a random weighting of the outputs."""

    def loss() -> Tensor:
        output = module(ids) if state is None else module(ids, state)
        parts = (output,) if isinstance(output, Tensor) else (output.layers, *output.state)
        return torch.stack([(part * noise(part.shape, i)).sum() for i, part in enumerate(parts)]).sum()

    occurring = torch.cat([ids.flatten(), torch.arange(257, N_IDS)]).unique().tolist()  # with the boundaries'
    varied = [*module.parameters(), *(state or ())]
    for tensor in varied:
        tensor.requires_grad_().grad = None
    loss().backward()
    for tensor in varied:
        assert tensor.grad is not None
        assert tensor.grad.any()
        assert largest_difference(tensor.grad, numeric_gradient(loss, tensor, occurring)) <= 1e-7


def noise(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


@torch.no_grad()
def numeric_gradient(loss: Callable[[], Tensor], tensor: Tensor, occurring: list[int], step: float = 1e-6) -> Tensor:
    """Of the embedding only the rows that occur are varied: the others can't have a gradient."""
    values, gradient = tensor.view(-1), torch.zeros_like(tensor)
    indices = torch.arange(len(values)).view(tensor.shape)
    for k in (indices[occurring] if len(tensor) == N_IDS else indices).flatten().tolist():
        before = float(values[k])
        sides = []
        for side in (step, -step):
            values[k] = before + side
            sides.append(float(loss()))
        values[k] = before
        gradient.view(-1)[k] = (sides[0] - sides[1]) / (2 * step)
    return gradient


def network(**changes: object) -> BiLM:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=1, scale=0.8)).double()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("n_highway", [0, 2])
def test_character_encoder(activation: str, n_highway: int) -> None:
    bilm = network(activation=activation, n_highway=n_highway)
    ids = character_ids([["ab", "naïve", "c", "", "ab"]], bilm.options)[0]
    check(bilm.char_cnn, torch.cat([bilm.boundary, ids]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation": "tanh", "cell_clip": None, "proj_clip": None, "n_highway": 0, "use_skip_connections": False},
        {"dim": 2, "filters": ((2, 2),)},
    ],
    ids=str,
)
def test_whole_network(changes: dict[str, object]) -> None:
    bilm = network(**changes)
    ids = character_ids(SENTENCES, bilm.options)
    state = random_state(bilm.options, len(SENTENCES))
    names = dict(bilm.named_parameters())
    assert ("lstm.layers.0.projection" in names) is ("dim" not in changes)
    assert ("char_cnn.projection.weight" in names) is ("filters" not in changes)
    check(bilm, ids, state)
