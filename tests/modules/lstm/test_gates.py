"""The order of the gates, which the compiled loops and AllenNLP's weights depend on."""

import torch

from spacy_elmo.kernels.calls import GATE_F, GATE_I, GATE_J, GATE_O, GATES
from spacy_elmo.modules.lstm_cell import Gates, with_forget_bias

DIM = 3


def test_the_order_is_that_of_the_compiled_loops() -> None:
    """constants.h has the numbers, and tests/kernels/test_constants.py compares them with these."""
    values = torch.arange(GATES).repeat_interleave(DIM).repeat(2, 1)
    gates = Gates.of(values)
    for part, number in zip(
        (gates.input, gates.candidate, gates.forget, gates.output), (GATE_I, GATE_J, GATE_F, GATE_O)
    ):
        assert torch.equal(part, torch.full((2, DIM), number))


def test_the_parts_are_views() -> None:
    values = torch.zeros(GATES * DIM)
    Gates.of(values).output.add_(1)
    assert values.tolist() == [0.0] * 9 + [1.0] * 3


def test_the_forget_bias_is_added_to_the_third_gate_of_a_file() -> None:
    """The order i, j, f, o of TensorFlow's LSTMCell, and its forget_bias of 1."""
    assert with_forget_bias(torch.zeros(2, 4), torch.float32).tolist() == [[0.0, 0.0, 1.0, 0.0]] * 2
