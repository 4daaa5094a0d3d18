"""The adaptive softmax against numpy, torch's own class and numeric gradients, and cutoffs that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bilm_cases import largest_difference
from torch import Tensor, nn

from spacy_elmo.errors import SettingsError
from spacy_elmo.modules import softmax as adaptive_softmax
from spacy_elmo.modules.softmax import AdaptiveSoftmax, adaptive_losses

WORDS, WIDTH, CUTOFFS = 23, 17, [5, 11]  # vectors of width 4 and 1 in the clusters
ALL_WORDS = torch.arange(WORDS)


def adaptive(words: int = WORDS, width: int = WIDTH, cutoffs: list[int] = CUTOFFS, seed: int = 0) -> AdaptiveSoftmax:
    layer = AdaptiveSoftmax(words, width, cutoffs)
    layer.reset_parameters(torch.linspace(-2, -5, words), torch.Generator().manual_seed(seed))
    return layer


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 1, shape))


def normalised(logits: np.ndarray) -> np.ndarray:
    highest = logits.max(1, keepdims=True)
    return logits - highest - np.log(np.exp(logits - highest).sum(1, keepdims=True))


def plain_log_p(layer: AdaptiveSoftmax, x: Tensor) -> np.ndarray:
    """The definition: log p of every word, *Shape:* (rows, words), from the logits of the head and the clusters."""
    values = {name: tensor.double().numpy() for name, tensor in layer.state_dict().items()}
    rows = x.double().numpy()
    head = normalised(rows @ values["weight"].T + values["bias"])
    columns = [head[:, : layer.cutoffs[0]]]
    for i in range(len(layer.cutoffs)):
        within = normalised(rows @ values[f"down.{i}"].T @ values[f"words.{i}"].T)
        columns.append(head[:, layer.cutoffs[0] + i, None] + within)
    return np.concatenate(columns, 1)


@pytest.mark.parametrize(
    ("words", "width", "cutoffs"), [(WORDS, WIDTH, CUTOFFS), (9, 4, [8]), (12, 64, [1, 2, 3]), (70, 300, [4, 20, 50])]
)
def test_log_probabilities_of_all_words(words: int, width: int, cutoffs: list[int]) -> None:
    layer = adaptive(words, width, cutoffs).double()
    x = drawn(3, width)
    expected = plain_log_p(layer, x)
    np.testing.assert_allclose(np.exp(expected).sum(1), 1, rtol=1e-12)
    targets = torch.arange(words)
    for row in range(len(x)):
        repeated = x[row].expand(words, width)
        for got in (layer(repeated, targets), layer.loss(repeated, targets)):
            assert largest_difference(got.detach(), -expected[row]) <= 1e-12


def test_targets_of_all_clusters_in_one_batch() -> None:
    layer = adaptive()
    x, targets = drawn(60, WIDTH).float(), torch.arange(60) * 7 % WORDS
    expected = -plain_log_p(layer, x)[np.arange(60), targets]
    got = layer(x, targets)
    assert got.dtype == torch.float32
    assert largest_difference(got.detach(), expected) <= 2e-6


def test_equals_torchs_adaptive_softmax() -> None:
    layer = adaptive().double()
    reference = nn.AdaptiveLogSoftmaxWithLoss(WIDTH, WORDS, CUTOFFS, 4.0, head_bias=True).double()
    names = {
        "weight": "head.weight",
        "bias": "head.bias",
        "down.0": "tail.0.0.weight",
        "down.1": "tail.1.0.weight",
        "words.0": "tail.0.1.weight",
        "words.1": "tail.1.1.weight",
    }
    assert names.keys() == layer.state_dict().keys()
    reference.load_state_dict({names[name]: values for name, values in layer.state_dict().items()})
    x = drawn(WORDS, WIDTH)
    assert largest_difference(layer(x, ALL_WORDS).detach(), -reference(x, ALL_WORDS).output.detach()) <= 1e-12


@pytest.mark.parametrize("targets", [[1, 2, 4, 5, 7, 2], [0, 1], [7, 5]], ids=str)
def test_gradients(targets: list[int]) -> None:
    layer = adaptive(8, 16, [2, 5]).double()
    parameters = [values.detach().requires_grad_() for values in layer.parameters()]
    x = drawn(len(targets), 16).requires_grad_()

    def losses(x: Tensor, *parameters: Tensor) -> Tensor:
        return adaptive_losses(parameters, layer.cutoffs, x, torch.tensor(targets), None)

    assert torch.autograd.gradcheck(losses, (x, *parameters))


@pytest.mark.parametrize("matmul_dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("cluster", [0, 1, 2])
def test_clusters_without_a_target_have_zero_gradients(cluster: int, matmul_dtype: torch.dtype) -> None:
    layer, x = adaptive(), drawn(3, WIDTH).float()
    targets = torch.tensor([[0, 4, 2], [5, 10, 5], [22, 11, 12]][cluster])
    names = [name for name, _ in layer.named_parameters()]
    gradients = torch.autograd.grad(layer(x, targets, matmul_dtype).sum(), list(layer.parameters()))
    with_gradient = {"weight", "bias"} | ({f"down.{cluster - 1}", f"words.{cluster - 1}"} if cluster else set())
    assert {name for name, gradient in zip(names, gradients) if gradient.any()} == with_gradient


@pytest.mark.parametrize("rows", [0, 1, 7, 23])
def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    layer = adaptive().double()
    x, targets = drawn(rows, WIDTH), ALL_WORDS[:rows]
    expected = layer(x, targets).detach()
    for values in (1, 36, 1 << 22):
        monkeypatch.setattr(adaptive_softmax, "MAX_LOGITS", values)
        losses = layer.loss(x, targets)
        assert losses.shape == (rows,)
        assert not losses.requires_grad
        assert largest_difference(losses, expected) <= 1e-12


def test_matrix_multiplications_in_bfloat16() -> None:
    """Values and gradients, with a bound on the relative L2 error. bfloat16's eight bits of mantissa are 0.4 %."""
    layer, x = adaptive(60, 64, [10, 30]), drawn(200, 64).float()
    targets = torch.arange(200) % 60
    both = [layer(x, targets, matmul_dtype) for matmul_dtype in (torch.bfloat16, None)]
    assert both[0].dtype == torch.float32
    gradients = [torch.autograd.grad(losses.sum(), list(layer.parameters())) for losses in both]
    for got, expected in [[losses.detach() for losses in both], *zip(*gradients)]:
        assert got.dtype == torch.float32
        assert float((got - expected).norm() / expected.norm()) <= 0.02
    assert not torch.equal(*both)


def test_large_logits_and_nan() -> None:
    layer = adaptive().double()
    x = 1e4 * drawn(WORDS, WIDTH)
    expected = -plain_log_p(layer, x)[np.arange(WORDS), np.arange(WORDS)]
    np.testing.assert_allclose(layer.loss(x, ALL_WORDS).numpy(), expected, rtol=1e-9)
    x[3, 2] = torch.nan
    assert layer.loss(x, ALL_WORDS).isnan().nonzero().tolist() == [[3]]


def test_initial_biases_give_the_words_frequencies() -> None:
    p = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(WORDS)))
    layer = AdaptiveSoftmax(WORDS, WIDTH, CUTOFFS)
    layer.reset_parameters(p.log(), torch.Generator().manual_seed(0))
    got = np.exp(plain_log_p(layer, torch.zeros(1, WIDTH))[0])
    np.testing.assert_allclose(got[:5], p[:5], rtol=1e-5)
    np.testing.assert_allclose([got[5:11].sum(), got[11:].sum()], [p[5:11].sum(), p[11:].sum()], rtol=1e-5)
    for weight in (layer.weight, *layer.down, *layer.words):
        bound = weight.shape[1] ** -0.5
        assert 0.5 * bound < float(weight.detach().abs().max()) <= bound


def test_the_generator_determines_the_initial_weights() -> None:
    states = [adaptive(seed=seed).state_dict() for seed in (1, 1, 2)]
    for name, values in states[0].items():
        assert torch.equal(values, states[1][name])
        assert name == "bias" or not torch.equal(values, states[2][name])
    layer = AdaptiveSoftmax(WORDS, WIDTH, CUTOFFS)
    layer.reset_parameters()
    assert not layer.bias.any()


@pytest.mark.parametrize(
    ("words", "width", "cutoffs", "message"),
    [
        (100, 15, [5, 11], "has 2 numbers, too many for a projection_dim of 15.*Expected 1 at most.* of 16 or more"),
        (100, 128, [5, 11, 20, 30], "has 4 numbers, too many for a projection_dim of 128.*3 at most.* of 256 or more"),
        (100, 3, [5], "projection_dim is 3, too small.*Expected 4 or more"),
        (11, 64, [5, 11], r"cutoffs is \[5, 11\], but the vocabulary has 11 words.*from 1 to 10"),
        (100, 64, [5, 5], "each larger than the one before"),
        (100, 64, [0, 5], "from 1 to 99"),
        (100, 64, [], "one number or more"),
    ],
)
def test_cutoffs_that_do_not_fit(words: int, width: int, cutoffs: list[int], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        AdaptiveSoftmax(words, width, cutoffs)
