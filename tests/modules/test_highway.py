"""The formula of the highway layer against numpy, in new memory and in place."""

import numpy as np
import torch

from spacy_elmo.modules.char_cnn import Highway, highway_sum_in_place


def test_formula_and_computation_in_place() -> None:
    generator = torch.Generator().manual_seed(0)
    layer, x = Highway(40), torch.randn(7, 40, generator=generator)
    layer.reset_parameters(generator)
    with torch.no_grad():
        plain, carry, transform = layer(x), layer.carry(x), layer.transform(x)
    share = 1 / (1 + np.exp(-carry.double().numpy()))
    expected = share * np.maximum(transform.double().numpy(), 0) + (1 - share) * x.double().numpy()
    np.testing.assert_allclose(plain.numpy(), expected, rtol=0, atol=1e-6)
    x_before, memory = x.clone(), transform.data_ptr()
    got = highway_sum_in_place(x, carry, transform)
    assert got.data_ptr() == memory
    assert torch.equal(got, plain)
    assert torch.equal(x, x_before)
