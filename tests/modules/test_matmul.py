"""Matrix multiplications in bfloat16 between values in float32."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spacy_elmo.modules.char_cnn import Highway, linear

# two rounded factors, 2^-9 relative each at most, then a rounded product
BOUND = 2**-8


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def relative(got: Tensor, expected: Tensor) -> float:
    """Error in the root mean square."""
    return float((got.double() - expected.double()).norm() / expected.double().norm())


def made_linear() -> nn.Linear:
    layer = nn.Linear(64, 33)
    with torch.no_grad():
        layer.weight.copy_(drawn(33, 64, seed=1) / 8)
        layer.bias.copy_(drawn(33, seed=2))
    return layer


@pytest.mark.parametrize("matmul_dtype", [None, torch.float32])
def test_linear_in_its_own_type(matmul_dtype: torch.dtype | None) -> None:
    layer, x = made_linear(), drawn(50, 64)
    expected = F.linear(x.double(), layer.weight.double(), layer.bias.double())
    assert relative(linear(x, layer, matmul_dtype).detach(), expected.detach()) <= 1e-6


def test_linear_in_bfloat16() -> None:
    layer, x = made_linear(), drawn(50, 64).requires_grad_()
    exact = made_linear().double()
    x_exact = x.detach().double().requires_grad_()
    got, expected = linear(x, layer, torch.bfloat16), exact(x_exact)
    assert got.dtype == torch.float32
    assert 1e-4 < relative(got.detach(), expected.detach()) <= BOUND
    # the bias is added in float32: it comes out whole where the product is 0
    assert torch.equal(linear(torch.zeros(1, 64), layer, torch.bfloat16)[0], layer.bias)
    weights = drawn(50, 33, seed=3)
    (got * weights).sum().backward()
    (expected * weights).sum().backward()
    for a, b in ((x, x_exact), (layer.weight, exact.weight), (layer.bias, exact.bias)):
        assert a.grad is not None
        assert b.grad is not None
        assert a.grad.dtype == torch.float32
        assert relative(a.grad, b.grad) <= BOUND


def test_highway_in_bfloat16() -> None:
    highway, exact = Highway(64), Highway(64).double()
    highway.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():  # far from relu's corner, where rounding would decide between a gradient and none
        highway.transform.weight.mul_(0.1)
        highway.transform.bias.copy_((torch.arange(64) % 2) * 2 - 1)
    exact.load_state_dict(highway.state_dict())
    x = drawn(50, 64).requires_grad_()
    x_exact = x.detach().double().requires_grad_()
    got, expected = highway(x, torch.bfloat16), exact(x_exact)
    # what the gate carries over is not rounded at all
    assert relative(got.detach(), expected.detach()) <= BOUND / 4
    got.sin().sum().backward()
    expected.sin().sum().backward()
    for a, b in zip([x, *highway.parameters()], [x_exact, *exact.parameters()], strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert relative(a.grad, b.grad) <= 0.01
