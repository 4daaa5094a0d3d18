"""The BiLSTM against torch's own on packed rows."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from spacy_elmo.tasks.shared import BiLSTM

LENGTHS = torch.tensor([4, 7, 1])


def torchs_own(ours: BiLSTM, width: int, lstm_width: int) -> nn.LSTM:
    """With the same weights."""
    depth = len(ours.forwards)
    theirs = nn.LSTM(width, lstm_width, depth, batch_first=True, bidirectional=True)
    weights = {}
    for layers, suffix in ((ours.forwards, ""), (ours.backwards, "_reverse")):
        for number, layer in enumerate(layers):
            weights |= {f"{name.removesuffix('0')}{number}{suffix}": w for name, w in layer.state_dict().items()}
    theirs.load_state_dict(weights)
    return theirs


@pytest.mark.parametrize("depth", [1, 2])
def test_values_and_gradients(depth: int) -> None:
    torch.manual_seed(0)
    ours = BiLSTM(5, 3, depth)
    theirs = torchs_own(ours, 5, 3)
    x = torch.randn(3, 7, 5)
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    packed, _ = theirs(pack_padded_sequence(inputs[1], LENGTHS, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    got = ours(inputs[0], LENGTHS)
    inside = torch.arange(7) < LENGTHS[:, None]
    torch.testing.assert_close(got[inside], expected[inside])
    for values in (got, expected):
        (values[inside] ** 2).sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)


def test_dropout_is_between_the_layers_alone() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 7, 5)
    one, two = BiLSTM(5, 3), BiLSTM(5, 3, 2)
    torch.testing.assert_close(one(x, LENGTHS, 0.5), one(x, LENGTHS))
    assert not torch.allclose(two(x, LENGTHS, 0.5), two(x, LENGTHS))
