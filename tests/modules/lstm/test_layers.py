"""Where dropout and skip connections are in the stack of layers."""

from __future__ import annotations

import pytest
import torch

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.modules.lstm import BiLstm, scan_layers


@pytest.mark.parametrize("skip", [False, True])
def test_the_skip_connection_adds_the_input_after_dropout(skip: bool) -> None:
    """In bilm-tf, DropoutWrapper(input_keep_prob) is around ResidualWrapper(cell), which the first layer does not have.

    With weights of 0 a cell gives 0, so that each layer but the first gives its dropped input. Dropout adds 3 here.
    """
    options = BiLMOptions(3, ((1, 4),), 0, "relu", 12, 5, 4, 3, 3.0, 3.0, skip)
    lstm = BiLstm(options)
    for parameter in lstm.parameters():
        torch.nn.init.zeros_(parameter)
    x = torch.ones(2, 6, 1, 4)
    outputs, hidden, _ = scan_layers(options, lstm.weights(), x, lstm.zero_state(1), drop=lambda x: x + 3)
    assert [output.unique().tolist() for output in outputs] == ([[0.0], [3.0], [6.0]] if skip else [[0.0]] * 3)
    assert not any(h.any() for h in hidden)
