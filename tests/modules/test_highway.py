"""The formula of the highway layer against numpy, in new memory and in place."""

import numpy as np
import torch

from spacy_elmo.modules.char_cnn import highway_sum, highway_sum_in_place


def test_formula_and_computation_in_place() -> None:
    x, carry, transform = torch.randn(3, 7, 40, generator=torch.Generator().manual_seed(0)).unbind()
    share = 1 / (1 + np.exp(-carry.double().numpy()))
    expected = share * np.maximum(transform.double().numpy(), 0) + (1 - share) * x.double().numpy()
    plain = highway_sum(x, carry, transform)
    np.testing.assert_allclose(plain.numpy(), expected, rtol=0, atol=1e-6)
    x_before, memory = x.clone(), transform.data_ptr()
    got = highway_sum_in_place(x, carry, transform)
    assert got.data_ptr() == memory
    assert torch.equal(got, plain)
    assert torch.equal(x, x_before)
