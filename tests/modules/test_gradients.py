"""Gradients of the character encoder and of the whole network against numeric ones."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from bilm_cases import bilm_of, character_ids, random_datasets, random_state
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules import BiLM, LstmState

OPTIONS = BiLMOptions(2, ((1, 2), (2, 2)), 1, "relu", 6, 3, 2, 2, 0.4, 0.2, True)
SENTENCES = [["ab", "naïve", "c"], ["b"]]


def check(module: nn.Module, ids: Tensor, state: LstmState | None = None) -> None:
    """Gradients of all parameters, and of the state. That of each has an effect on the outputs."""
    parameters = dict(module.named_parameters())

    def outputs(*given: Tensor) -> tuple[Tensor, ...]:
        replaced, of_state = dict(zip(parameters, given)), given[len(parameters) :]
        arguments = (ids, LstmState(*of_state)) if of_state else (ids,)
        output = torch.func.functional_call(module, replaced, arguments)
        return (output,) if isinstance(output, Tensor) else (output.layers, *output.state)

    varied = [part.detach().clone().requires_grad_() for part in (*parameters.values(), *(state or ()))]
    assert torch.autograd.gradcheck(outputs, varied, atol=1e-6, fast_mode=True)
    sum(output.sin().sum() for output in outputs(*varied)).backward()  # type: ignore[union-attr]
    assert all(part.grad is not None and part.grad.any() for part in varied)


def network(**changes: object) -> BiLM:
    options = dataclasses.replace(OPTIONS, **changes)  # type: ignore[arg-type]
    return bilm_of(options, random_datasets(options, seed=1, scale=0.8)).double()


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("n_highway", [0, 2])
def test_character_encoder(activation: str, n_highway: int) -> None:
    bilm = network(activation=activation, n_highway=n_highway)
    ids = character_ids([["ab", "naïve", "c", "", "ab"]], bilm.options)[0]
    check(bilm.char_cnn, torch.cat([bilm.boundary, ids]))


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
    names = dict(bilm.named_parameters())
    assert ("lstm.layers.0.projection" in names) is ("dim" not in changes)
    assert ("char_cnn.projection.weight" in names) is ("filters" not in changes)
    check(bilm, character_ids(SENTENCES, bilm.options), random_state(bilm.options, len(SENTENCES)))
