"""The character encoder by table against products over windows, and against torch's conv1d in float64."""

from __future__ import annotations

import ctypes
import dataclasses
import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import words_to_ids
from spacy_elmo.modules import BiLM
from spacy_elmo.modules import char_cnn as convolutions
from spacy_elmo.modules.char_cnn import CharCnn, Highway, highway_sum_in_place, linear

FILTERS = ((1, 32), (2, 33), (3, 64), (4, 130), (5, 5), (6, 1), (7, 64), (8, 70), (9, 1))
OPTIONS = BiLMOptions(16, FILTERS, 1, "tanh", 50, 8, 8, 1, None, None, False)


def words() -> list[str]:
    """One word of each length from 1 to 48 bytes, a longer one, and some of few or many bytes a character."""
    source = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyzäßé東🙂"
    cut = ["".join(source.choices(letters, k=48)).encode()[:n].decode(errors="ignore") for n in range(1, 49)]
    return [*cut, "x" * 60, "aaaaaaa", "🙂" * 20, "", "東京"]


def encoder(options: BiLMOptions = OPTIONS) -> CharCnn:
    bilm = BiLM(options)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    encoder = bilm.char_cnn
    for convolution in encoder.convolutions:
        torch.nn.init.normal_(convolution.get_parameter("bias"), generator=torch.Generator().manual_seed(1))
    return encoder


def ids_of(options: BiLMOptions) -> Tensor:
    """Those of words(), and a masked word."""
    ids = torch.from_numpy(words_to_ids(words(), options.max_characters))
    return torch.cat([ids, torch.zeros_like(ids[:1])])


def pool(made: CharCnn, ids: Tensor) -> Tensor:
    filters = [(c.get_parameter("weight"), c.get_parameter("bias")) for c in made.convolutions]
    return convolutions.pool(made.options, made.embedding.weight, filters, ids)


def by_conv1d(encoder: CharCnn, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The activated maxima over all positions, from torch's own operations in float64, and the leaves."""
    embedding = encoder.embedding.weight.detach().double().requires_grad_()
    leaves, parts = [embedding], []
    x = F.embedding(ids, embedding, padding_idx=0).transpose(1, 2)
    for convolution in encoder.convolutions:
        weight, bias = (convolution.get_parameter(n).detach().double().requires_grad_() for n in ("weight", "bias"))
        leaves += [weight, bias]
        parts.append(F.conv1d(x, weight, bias).amax(2))
    activation = {"relu": torch.relu, "tanh": torch.tanh}[encoder.options.activation]
    return activation(torch.cat(parts, 1)), leaves


def noise(tensor: Tensor) -> Tensor:
    return torch.from_numpy(np.random.default_rng(2).normal(size=tensor.shape))


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_values_and_gradients(activation: str) -> None:
    """With and without compiled loops: the windows cut off change nothing, nor does the table."""
    made = encoder(dataclasses.replace(OPTIONS, activation=activation))
    ids = ids_of(OPTIONS)
    pooled = pool(made, ids)
    expected, leaves = by_conv1d(made, ids)
    torch.testing.assert_close(pooled.double(), expected, rtol=0, atol=2e-6)
    (pooled * noise(pooled).float()).sum().backward()
    (expected * noise(expected)).sum().backward()
    mine = [made.embedding.weight]
    for convolution in made.convolutions:
        mine += [convolution.get_parameter("weight"), convolution.get_parameter("bias")]
    for got, wanted in zip(mine, leaves, strict=True):
        assert got.grad is not None
        assert wanted.grad is not None
        assert float((got.grad - wanted.grad).norm() / wanted.grad.norm()) <= 1e-5
    assert made.embedding.weight.grad is not None
    assert not made.embedding.weight.grad[0].any()  # the mask is not learned
    assert made.embedding.weight.grad[261].any()  # the padding is


def test_the_compiled_loops_are_what_runs(monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL) -> None:
    calls = []
    original = convolutions.maxima
    monkeypatch.setattr(convolutions, "maxima", lambda *arguments: calls.append(1) or original(*arguments))
    encoder()(ids_of(OPTIONS))
    assert len(calls) == 1


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("positions", [9, 255, 256, 257, 300])
def test_other_numbers_of_positions(positions: int) -> None:
    """9 is the widest filter; the compiled loop keeps places up to 255, torch takes over beyond. The largest sums lie
    at the end.
    """
    options = dataclasses.replace(OPTIONS, max_characters=positions)
    made = encoder(options)
    ids = torch.randint(1, 262, (5, positions), generator=torch.Generator().manual_seed(0))
    ids[0, -1] = 70
    with torch.no_grad():
        made.embedding.weight[70] *= 30
    pooled = pool(made, ids)
    expected, leaves = by_conv1d(made, ids)
    torch.testing.assert_close(pooled.double(), expected, rtol=0, atol=2e-5)
    (pooled * noise(pooled).float()).sum().backward()
    (expected * noise(expected)).sum().backward()
    assert made.embedding.weight.grad is not None
    assert leaves[0].grad is not None
    difference = made.embedding.weight.grad - leaves[0].grad
    assert float(difference.norm() / leaves[0].grad.norm()) <= 1e-5


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("wrong", [-1, 262, 2**15, 2**16 + 3])
def test_ids_that_are_none(wrong: int) -> None:
    """Refused with and without compiled loops, which would read beside the table."""
    ids = ids_of(OPTIONS)
    ids[3, 4] = wrong
    with pytest.raises(IndexError):
        encoder()(ids)


@pytest.mark.usefixtures("cell")
def test_fewer_positions_than_the_widest_filter() -> None:
    with pytest.raises(IndexError):
        encoder()(ids_of(OPTIONS)[:, :8])


@pytest.mark.usefixtures("cell")
def test_no_words() -> None:
    assert encoder()(ids_of(OPTIONS)[:0]).shape == (0, 8)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("name", ["embedding.weight", "convolutions.3.weight", "convolutions.3.bias"])
def test_nan_comes_through_relu(name: str) -> None:
    """A maximum by comparison would pass a NaN by, and relu would make 0 of -inf."""
    made = encoder(dataclasses.replace(OPTIONS, activation="relu"))
    with torch.no_grad():
        made.get_parameter(name)[ord("a") + 1 if name.startswith("embedding") else 0] = float("nan")
        encoded = made(torch.from_numpy(words_to_ids(["a", "xyz"], 50)))
    assert encoded[0].isnan().all()
    assert bool(encoded[1].isnan().any()) is not name.startswith("embedding")


def test_without_gradients_the_same() -> None:
    made, ids = encoder(), ids_of(OPTIONS)
    expected = made(ids).detach()
    with torch.no_grad():
        assert torch.equal(made(ids), expected)


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
    with torch.no_grad():  # far from relu's corner, where rounding would decide between a gradient and none
        highway.carry.weight.copy_(drawn(64, 64, seed=1) / 8)
        highway.carry.bias.fill_(-2.0)
        highway.transform.weight.copy_(drawn(64, 64, seed=2) / 80)
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


def test_formula_and_computation_in_place() -> None:
    generator = torch.Generator().manual_seed(0)
    layer, x = Highway(40), torch.randn(7, 40, generator=generator)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.2, generator=generator)
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
