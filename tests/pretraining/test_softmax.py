"""The output layers: losses, gradients and initial values, and the compiled loop of the sampled softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from bilm_cases import largest_difference, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spacy_elmo.pretraining import softmax
from spacy_elmo.pretraining.softmax import LogUniform, Softmax, _to_probabilities, sampled_loss

WORDS, WIDTH = 12, 4


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, scale, shape))


@pytest.mark.parametrize("rows", [0, 1, 5, 12])
def test_full_loss(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(softmax, "BLOCK_ROWS", 5)
    layer = Softmax(WORDS, WIDTH).double()
    probabilities = torch.linspace(0.2, 0.01, WORDS, dtype=torch.float64)
    layer.reset_parameters(probabilities.log(), torch.Generator().manual_seed(0))
    assert largest_difference(layer.bias.detach(), probabilities.log()) == 0
    x, targets = drawn(rows, WIDTH), torch.arange(rows) * 5 % WORDS
    logits = (x @ layer.weight.t() + layer.bias).detach()
    losses = layer.loss(x, targets)
    assert losses.shape == (rows,)
    assert not losses.requires_grad
    if rows:
        assert largest_difference(losses, F.cross_entropy(logits, targets, reduction="none")) <= 1e-12


def test_log_probabilities_are_those_of_the_loss() -> None:
    layer = Softmax(WORDS, WIDTH).double()
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    x, targets = drawn(WORDS, WIDTH), torch.arange(WORDS)
    found = layer.log_probabilities(x).detach()
    assert largest_difference(found.exp().sum(1), torch.ones(WORDS, dtype=torch.float64)) <= 1e-12
    assert largest_difference(-found[targets, targets], layer.loss(x, targets).detach()) <= 1e-12


def test_initial_values_are_those_of_bilm_tf() -> None:
    layer = Softmax(4000, 16)
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    assert not layer.bias.any()
    assert abs(float(layer.weight.detach().std()) - 0.25) < 0.005
    assert abs(float(layer.weight.detach().mean())) < 0.005


SAMPLED, SAMPLES = 8, 5  # words 0 to 4 are the sample, words 5 to 7 are targets outside of it
# The sample's first word, its last word and one between; words outside of it; words that are targets of two rows.
TARGETS = torch.tensor([0, 4, 2, 5, 6, 7, 2, 5])


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """x, weight, bias, sample_log_expected, target_log_expected. The first three require gradients."""
    rows = len(TARGETS)
    shapes = [(rows, WIDTH), (SAMPLED, WIDTH), (SAMPLED,), (SAMPLES,), (rows,)]
    tensors = [drawn(*shape, seed=i).to(dtype) for i, shape in enumerate(shapes)]
    return *(x.requires_grad_() for x in tensors[:3]), *tensors[3:]


def loss_of(*arguments: Tensor, matmul_dtype: torch.dtype | None = None) -> Tensor:
    x, weight, bias, *log_expected = arguments
    return sampled_loss(x, weight, bias, TARGETS, *log_expected, matmul_dtype=matmul_dtype)


def plain_loss(*arguments: Tensor) -> Tensor:
    """The definition: for each row a softmax over its target and the sampled words other than the target."""
    x, weight, bias, sample_log_expected, target_log_expected = arguments
    total = x.new_zeros(())
    for row, target in enumerate(TARGETS.tolist()):
        target_logit = x[row] @ weight[target] + bias[target] - target_log_expected[row]
        logits = [target_logit]
        for k in range(SAMPLES):
            if k != target:
                logits.append(x[row] @ weight[k] + bias[k] - sample_log_expected[k])
        total = total + torch.logsumexp(torch.stack(logits), 0) - target_logit
    return total


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize(
    ("dtype", "matmul_dtype", "bound"),
    [
        (torch.float64, torch.float64, 1e-12),
        (torch.float32, torch.float32, 1e-6),
        (torch.float32, torch.bfloat16, 0.01),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [1280, 3])
def test_sampled_loss(
    monkeypatch: pytest.MonkeyPatch, rows: int, dtype: torch.dtype, matmul_dtype: torch.dtype, bound: float
) -> None:
    """Values and gradients with and without compiled loops, with a bound on the relative L2 error."""
    monkeypatch.setattr(softmax, "MAX_BLOCK_ROWS", rows)
    mine, plain = inputs(dtype), inputs()
    got, expected = loss_of(*mine, matmul_dtype=matmul_dtype), plain_loss(*plain)
    assert got.dtype == dtype
    (3 * got).backward()
    (3 * expected).backward()
    assert abs(float(got.detach()) / float(expected.detach()) - 1) <= bound
    for a, b in zip(mine[:3], plain[:3], strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert a.grad.dtype == dtype
        assert float((a.grad - b.grad).norm() / b.grad.norm()) <= bound


def test_sampled_loss_of_large_logits() -> None:
    x, *others = (tensor.detach() for tensor in inputs())
    loss = loss_of(1e4 * x, *others)
    assert loss.isfinite()
    assert largest_difference(loss, plain_loss(1e4 * x, *others)) <= 1e-9 * float(loss)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str)
def test_sampled_loss_with_all_words_is_the_full_loss(dtype: torch.dtype, bound: float) -> None:
    x, weight, bias = drawn(5, WIDTH), drawn(SAMPLED, WIDTH, seed=1), drawn(SAMPLED, seed=2)
    targets = torch.tensor([3, 0, 7, 3, 6])
    zeros = torch.zeros(SAMPLED, dtype=dtype)
    got = sampled_loss(x.to(dtype), weight.to(dtype), bias.to(dtype), targets, zeros, zeros[:5])
    expected = F.cross_entropy(x @ weight.t() + bias, targets, reduction="sum")
    assert largest_difference(got, expected) <= bound * float(expected)


def one_by_one(n_words: int, seed: int) -> Iterator[int]:
    """The words in the order in which the sampler draws them, repetitions included."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        uniform = float(torch.rand(1, generator=generator, dtype=torch.float64))
        yield min(int(math.exp(uniform * math.log(n_words + 1)) - 1), n_words - 1)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 30), seeds)
def test_words_are_drawn_until_enough_are_distinct(data: st.DataObject, n_words: int, seed: int) -> None:
    n_samples = data.draw(st.integers(1, n_words))
    words, n_draws = LogUniform(n_words, n_samples).draw(torch.Generator().manual_seed(seed))
    distinct: set[int] = set()
    expected_draws = 0
    for word in one_by_one(n_words, seed):
        expected_draws += 1
        distinct.add(word)
        if len(distinct) == n_samples:
            break
    assert words.tolist() == sorted(distinct)
    assert n_draws == expected_draws
    assert words.dtype == torch.int64


def test_single_words_are_drawn_with_their_probability() -> None:
    n_words, times = 8, 4000
    sampler, generator = LogUniform(n_words, 1), torch.Generator().manual_seed(0)
    counts = np.bincount([int(sampler.draw(generator)[0]) for _ in range(times)], minlength=n_words) / times
    ranks = np.arange(n_words)
    probabilities = np.log((ranks + 2) / (ranks + 1)) / np.log(n_words + 1)
    assert abs(probabilities.sum() - 1) < 1e-12
    assert np.abs(counts - probabilities).max() < 4 * math.sqrt(0.25 / times)
    np.testing.assert_allclose(sampler.log_expected(torch.arange(n_words), 1).numpy(), np.log(probabilities), rtol=1e-5)


@pytest.mark.parametrize(("n_words", "n_draws"), [(8, 5), (50_000, 9000), (793_471, 12_345)])
def test_expected_counts(n_words: int, n_draws: int) -> None:
    """1 - (1 - p)^n_draws, TensorFlow's formula."""
    sampler = LogUniform(n_words, 1)
    ranks = np.unique(np.linspace(0, n_words - 1, 50).astype(np.int64))
    p = np.log1p(1 / (ranks + 1)) / np.log(n_words + 1)
    expected = np.log(-np.expm1(n_draws * np.log1p(-p)))
    got = sampler.log_expected(torch.from_numpy(ranks), n_draws)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-6)


ROWS = 7
LOOP_WORDS = [1, 5, 33, 64, 130, 1000]
TYPES = [torch.float32, torch.bfloat16]
NAN, INF = float("nan"), float("inf")


class Block(NamedTuple):
    logits: Tensor
    offset: Tensor
    true_logits: Tensor
    hits: Tensor


class Result(NamedTuple):
    probabilities: Tensor
    losses: Tensor
    d_true: Tensor


def block_of(words: int, dtype: torch.dtype, scale: float = 3.0) -> Block:
    rng = np.random.default_rng(words)

    def normal(*shape: int) -> Tensor:
        return torch.from_numpy(rng.normal(0, scale, shape).astype(np.float32))

    hits = torch.tensor([-1, 0, words - 1, -1, words // 2, -1, 0], dtype=torch.int32)
    return Block(normal(ROWS, words).to(dtype), normal(words), normal(ROWS), hits)


def run(block: Block) -> Result:
    logits, losses, d_true = block.logits.clone(), torch.full((ROWS,), 9.0), torch.full((ROWS,), 9.0)
    _to_probabilities(logits, block.offset, block.true_logits, block.hits, losses, d_true)
    return Result(logits, losses, d_true)


@pytest.mark.parametrize("words", LOOP_WORDS)
@pytest.mark.parametrize("scale", [0.01, 3.0, 100.0])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.usefixtures("cell")
def test_equals_numpy(words: int, scale: float, dtype: torch.dtype) -> None:
    block = block_of(words, dtype, scale)
    logits = block.logits.double().numpy() + block.offset.double().numpy()
    for row, hit in enumerate(block.hits.tolist()):
        if hit >= 0:
            logits[row, hit] = -np.inf
    all_logits = np.concatenate([logits, block.true_logits.double().numpy()[:, None]], 1)
    exponentials = np.exp(all_logits - all_logits.max(1, keepdims=True))
    p = exponentials / exponentials.sum(1, keepdims=True)
    losses = np.log(exponentials.sum(1)) + all_logits.max(1) - all_logits[:, -1]
    got = run(block)
    exact = 2e-6 * max(1, scale / 3)  # float32 holds larger logits less exactly
    bound = 2**-8 if dtype == torch.bfloat16 else exact
    np.testing.assert_allclose(got.probabilities.double().numpy(), p[:, :-1], rtol=bound, atol=1e-9)
    np.testing.assert_allclose(got.losses.numpy(), losses, rtol=exact, atol=exact)
    np.testing.assert_allclose(got.d_true.numpy(), p[:, -1] - 1, rtol=exact, atol=exact)


@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("where", [0, 3, 63, 64, 129], ids="word {}".format)
@pytest.mark.parametrize("name", ["logits", "offset", "true_logits"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_is_no_number_is_seen_in_the_loss(
    twice: Callable, value: float, where: int, name: str, dtype: torch.dtype
) -> None:
    block = block_of(130, dtype)
    damaged = getattr(block, name).clone()
    index = {"logits": (3, where), "offset": (where,), "true_logits": (3,)}[name]
    damaged[index] = value
    for got in twice(lambda: run(block._replace(**{name: damaged}))):
        assert not got.losses[3].isfinite()
        if name != "offset":
            assert got.losses[[0, 1, 2, 4, 5, 6]].isfinite().all()
