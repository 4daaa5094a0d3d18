"""Tuning with weight decay: AllenNLP stores the forget gate's bias with 1 added, this package without."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from spacy_elmo import Elmo, batch_to_ids

STEPS, RATE, DECAY = 10, 0.05, 0.1


def tuned(golden: Path, *, theirs: bool, decay_of_biases: float) -> dict[str, Tensor]:
    """The parameters after some steps of SGD, in our layout. theirs: the forget gates' biases are stored as AllenNLP's
    _ElmoBiLm stores them (`tf_bias[2 * cell_size : 3 * cell_size] += 1` in elmo_lstm.py).
    """
    folder = golden / "random_a"
    elmo = Elmo(folder / "options.json", folder / "weights.hdf5", 1, requires_grad=True, dropout=0)
    ids = batch_to_ids([["First", "sentence", "."], ["Another"]])
    leaves = {name: parameter.detach().clone() for name, parameter in elmo.named_parameters()}
    lstm_biases = [name for name in leaves if "lstm.layers" in name and name.endswith("bias")]
    assert lstm_biases

    def shifted(named: dict[str, Tensor], by: float) -> dict[str, Tensor]:
        if not theirs:
            return named
        one = {name: torch.zeros_like(named[name]).view(2, 4, -1) for name in lstm_biases}
        for array in one.values():
            array[:, 2] = by
        return {name: value + one[name].flatten(1) if name in one else value for name, value in named.items()}

    leaves = shifted(leaves, 1.0)
    groups = [
        {"params": [leaf for name, leaf in leaves.items() if not name.endswith("bias")], "weight_decay": DECAY},
        {"params": [leaf for name, leaf in leaves.items() if name.endswith("bias")], "weight_decay": decay_of_biases},
    ]
    optimizer = torch.optim.SGD(groups, lr=RATE)
    for _ in range(STEPS):
        with torch.no_grad():
            for name, value in shifted(leaves, -1.0).items():
                elmo.get_parameter(name).copy_(value)
        elmo.zero_grad()
        elmo(ids)["elmo_representations"][0].square().mean().backward()
        for name, leaf in leaves.items():
            leaf.grad = elmo.get_parameter(name).grad
        optimizer.step()
    return shifted(leaves, -1.0)


@pytest.mark.parametrize("decay_of_biases", [0.0, DECAY])
def test_without_decay_of_the_biases_both_go_the_same_way(golden: Path, decay_of_biases: float) -> None:
    """With it, AllenNLP's forget gates lose the share (1 - rate * decay)^steps of the 1, and ours do not."""
    ours, theirs = (tuned(golden, theirs=theirs, decay_of_biases=decay_of_biases) for theirs in (False, True))
    lost = 1 - (1 - RATE * decay_of_biases) ** STEPS
    for name, expected in theirs.items():
        difference = ours[name] - expected
        if "lstm.layers" in name and name.endswith("bias"):
            difference = difference.view(2, 4, -1)
            # the gradients differ, too, as soon as the weights do
            assert (difference[:, 2] - lost).abs().max() <= 2e-6 + 0.05 * lost
        elif decay_of_biases == 0:
            assert difference.abs().max() <= 2e-6
