"""The scalar mix against numpy and numeric gradients. Elmo runs it on AllenNLP's outputs."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from bilm_cases import largest_difference
from torch import Tensor

from spacy_elmo.errors import SettingsError
from spacy_elmo.modules.scalar_mix import LayerNorm, ScalarMix

KINDS: tuple[LayerNorm, ...] = get_args(LayerNorm)
WEIGHTS = [0.3, -0.4, 1.1]
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)


def random_layers(seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0.5, 2.0, (3, 2, 4, 5)))


def mix_of(kind: LayerNorm, gamma: float = 0.7, dropout: float = 0.0) -> ScalarMix:
    mix = ScalarMix(3, kind, WEIGHTS, dropout=dropout).double()
    with torch.no_grad():
        mix.w.copy_(torch.tensor(WEIGHTS, dtype=torch.float64))
        mix.gamma.fill_(gamma)
    return mix


def numpy_mix(layers: np.ndarray, mask: np.ndarray, kind: LayerNorm, gamma: float) -> np.ndarray:
    """The definition, position by position."""
    weights = np.exp(WEIGHTS) / np.exp(WEIGHTS).sum()
    mixed = np.zeros(layers.shape[1:])
    for weight, layer in zip(weights, layers, strict=True):
        unmasked = layer[mask]  # (positions, width)
        for position in zip(*np.nonzero(mask), strict=True):
            vector = layer[position]
            if kind != "none":
                values, epsilon = (unmasked, 1e-13) if kind == "batch" else (vector, 1e-12)
                vector = (vector - values.mean()) / np.sqrt(values.var() + epsilon)
            mixed[position] += gamma * weight * vector
    return mixed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [None, MASK, MASK.long()], ids=["none", "bool", "integers"])
def test_equals_numpy(kind: LayerNorm, mask: Tensor | None) -> None:
    layers = random_layers()
    numpy_mask = np.ones((2, 4), bool) if mask is None else MASK.numpy()
    got = mix_of(kind)(layers, mask).detach().numpy()
    assert largest_difference(got, numpy_mix(layers.numpy(), numpy_mask, kind, 0.7)) <= 1e-12


@pytest.mark.parametrize(("dtype", "epsilon"), [(torch.float32, 1e-13), (torch.float64, 1e-13), (torch.float16, 1e-4)])
def test_epsilon_of_allennlp(dtype: torch.dtype, epsilon: float) -> None:
    """AllenNLP 2.10's ScalarMix written out, on layers whose variance is as small as its epsilon, the value of
    allennlp.nn.util.tiny_value_of_dtype. bilm-tf's 1e-12 would give a third of these values.
    """
    layers = (random_layers() * (epsilon**0.5 / 2)).to(dtype)
    mix = ScalarMix(3, "batch", WEIGHTS).to(dtype)
    broadcast_mask, num_elements_not_masked = MASK.unsqueeze(-1), torch.sum(MASK) * layers.size(-1)
    expected = torch.zeros_like(layers[0])
    for weight, tensor in zip(torch.softmax(torch.tensor(WEIGHTS, dtype=dtype), 0), layers, strict=True):
        tensor_masked = tensor * broadcast_mask
        mean = torch.sum(tensor_masked) / num_elements_not_masked
        variance = torch.sum(((tensor_masked - mean) * broadcast_mask) ** 2) / num_elements_not_masked
        expected += weight * (tensor - mean) / torch.sqrt(variance + epsilon)
    got = mix(layers, MASK)
    tolerance = 0.02 if dtype == torch.float16 else 1e-5
    assert largest_difference(got.detach()[MASK].double(), expected[MASK].double()) <= tolerance
    assert float(expected[MASK].abs().max()) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_masked_values_have_no_effect(kind: LayerNorm) -> None:
    layers = random_layers()
    other = layers.clone().requires_grad_()
    with torch.no_grad():
        other[:, 1, 2], other[:, 1, 3] = torch.nan, 1e30
    mixed = mix_of(kind)(other, MASK)
    assert not mixed[1, 2:].any()
    torch.testing.assert_close(mixed, mix_of(kind)(layers, MASK), rtol=0, atol=0)
    mixed.sin().sum().backward()
    assert other.grad is not None
    assert not other.grad[:, 1, 2:].any()
    assert other.grad.isfinite().all()


def test_the_initial_mix_is_the_mean() -> None:
    mix, layers = ScalarMix(3), random_layers().float()
    assert {name: tuple(p.shape) for name, p in mix.named_parameters()} == {"w": (3,), "gamma": (1,)}
    assert mix.w.tolist() == [0, 0, 0]
    assert mix.gamma.tolist() == [1]
    torch.testing.assert_close(mix(layers), layers.mean(0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [None, MASK], ids=["none", "mask"])
def test_gradients(kind: LayerNorm, mask: Tensor | None) -> None:
    mix = mix_of(kind)

    def function(layers: Tensor, w: Tensor, gamma: Tensor) -> Tensor:
        return torch.func.functional_call(mix, {"w": w, "gamma": gamma}, (layers, mask))

    inputs = [random_layers(1), mix.w.detach().clone(), mix.gamma.detach().clone()]
    assert torch.autograd.gradcheck(function, [x.requires_grad_() for x in inputs])


def test_only_batch_norm_depends_on_the_other_tokens() -> None:
    layers = random_layers()
    for kind, same in (("none", True), ("token", True), ("batch", False)):
        mix = mix_of(kind)  # type: ignore[arg-type]
        assert torch.allclose(mix(layers)[:1], mix(layers[:, :1])) is same


@pytest.mark.parametrize("kind", KINDS)
def test_equal_values_and_empty_batches(kind: LayerNorm) -> None:
    mix = mix_of(kind)
    mixed = mix(torch.full((3, 1, 2, 4), 2.5, dtype=torch.float64))
    torch.testing.assert_close(mixed, torch.full_like(mixed, 0.7 * 2.5 if kind == "none" else 0.0))
    for layers, mask in (
        (torch.zeros(3, 0, 4, 5), torch.zeros(0, 4, dtype=torch.bool)),
        (torch.zeros(3, 2, 0, 5), None),
        (torch.ones(3, 2, 4, 5), torch.zeros(2, 4, dtype=torch.bool)),
    ):
        mixed = mix(layers.double().requires_grad_(), mask)
        assert mixed.shape == layers.shape[1:]
        assert not mixed.any()
        mixed.sum().backward()
    assert mix.w.grad is not None
    assert mix.w.grad.isfinite().all()


def test_dropout_on_the_mix_in_training() -> None:
    mix, layers = ScalarMix(3, dropout=0.5), torch.ones(3, 2, 50, 20)
    torch.manual_seed(0)
    assert set(mix(layers).unique().tolist()) == {0.0, 2.0}
    assert 0.4 < (mix(layers) == 0).float().mean() < 0.6
    mix.eval()
    torch.testing.assert_close(mix(layers), torch.ones(2, 50, 20))


def test_the_weights_as_allennlp_has_them() -> None:
    """A list of parameters of one value there: reading, gradients of a penalty, and changes work on it."""
    mix = ScalarMix(3, initial_scalar_parameters=WEIGHTS)
    assert [tuple(p.shape) for p in mix.scalar_parameters] == [(1,)] * 3
    assert torch.cat(list(mix.scalar_parameters)).tolist() == mix.w.tolist()
    (0.5 * sum((p**2).sum() for p in mix.scalar_parameters)).backward()  # type: ignore[union-attr]
    torch.testing.assert_close(mix.w.grad, torch.tensor(WEIGHTS))
    mix.scalar_parameters[1].data.fill_(7.0)
    with torch.no_grad():
        mix.scalar_parameters[2].zero_()
    torch.testing.assert_close(mix.w.detach(), torch.tensor([WEIGHTS[0], 7.0, 0.0]))
    assert list(mix.state_dict()) == ["w", "gamma"]
    with pytest.raises(RuntimeError, match="leaf"):  # no silent loss: torch's error
        mix.scalar_parameters[0].requires_grad = False


def test_not_trainable() -> None:
    assert not any(p.requires_grad for p in ScalarMix(3, trainable=False).parameters())
    assert all(p.requires_grad for p in ScalarMix(3).parameters())


def test_bad_settings() -> None:
    with pytest.raises(SettingsError, match=r"scalar_mix_parameters has 2 values\. Expected 3"):
        ScalarMix(3, initial_scalar_parameters=[0.0, 1.0])
    with pytest.raises(SettingsError, match="layer_norm is 'layer'"):
        ScalarMix(3, "layer")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="dropout is 1"):
        ScalarMix(3, dropout=1.0)
    with pytest.raises(SettingsError, match=r"got 3 layers\. Expected 2"):
        ScalarMix(2)(random_layers().float())
    for value in (float("nan"), float("inf")):
        with pytest.raises(SettingsError, match="Expected finite numbers"):
            ScalarMix(2, initial_scalar_parameters=[value, 0.0])
