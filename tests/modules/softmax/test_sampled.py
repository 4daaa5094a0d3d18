"""The sampled loss against a loop over rows and words, and the sampler against its definition."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from bilm_cases import largest_difference, seeds
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spacy_elmo.modules import softmax as sampled_softmax
from spacy_elmo.modules.softmax import LogUniform, sampled_loss

WORDS, WIDTH, SAMPLES = 8, 4, 5  # words 0 to 4 are the sample, words 5 to 7 are targets outside of it
# The sample's first word, its last word and one between; words outside of it; words that are targets of two rows.
TARGETS = torch.tensor([0, 4, 2, 5, 6, 7, 2, 5])


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, scale, shape))


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """x, weight, bias, sample_log_expected, target_log_expected. The first three require gradients."""
    shapes = [(len(TARGETS), WIDTH), (WORDS, WIDTH), (WORDS,), (SAMPLES,), (len(TARGETS),)]
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


@pytest.mark.parametrize("rows", [1280, 8, 3, 1])
def test_sampled_loss(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(sampled_softmax, "MAX_BLOCK_ROWS", rows)
    mine, plain = inputs(), inputs()
    got, expected = loss_of(*mine), plain_loss(*plain)
    assert largest_difference(got.detach(), expected.detach()) <= 1e-12
    (3 * got).backward()
    (3 * expected).backward()
    for a, b in zip(mine[:3], plain[:3], strict=True):
        assert largest_difference(a.grad, b.grad) <= 1e-12  # type: ignore[arg-type]


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize(("matmul_dtype", "bound"), [(torch.float32, 1e-6), (torch.bfloat16, 0.01)], ids=str)
@pytest.mark.parametrize("rows", [1280, 3])
def test_sampled_loss_in_training(
    monkeypatch: pytest.MonkeyPatch, rows: int, matmul_dtype: torch.dtype, bound: float
) -> None:
    """Values and gradients with and without compiled loops, with a bound on the relative L2 error."""
    monkeypatch.setattr(sampled_softmax, "MAX_BLOCK_ROWS", rows)
    mine, plain = inputs(torch.float32), inputs()
    got, expected = loss_of(*mine, matmul_dtype=matmul_dtype), plain_loss(*plain)
    assert got.dtype == torch.float32
    (3 * got).backward()
    (3 * expected).backward()
    assert abs(float(got.detach()) / float(expected.detach()) - 1) <= bound
    for a, b in zip(mine[:3], plain[:3], strict=True):
        assert a.grad is not None
        assert b.grad is not None
        assert a.grad.dtype == torch.float32
        assert float((a.grad - b.grad).norm() / b.grad.norm()) <= bound


def test_sampled_loss_against_numeric_gradients() -> None:
    assert torch.autograd.gradcheck(loss_of, inputs())


def test_a_sampled_word_that_is_the_target_is_left_out() -> None:
    """If the targets were not left out, the value would be different."""
    x, weight, bias, sample_log_expected, target_log_expected = inputs()
    # The same targets as additional words after the sample, where they are not recognised as sampled words.
    copies = torch.arange(WORDS, WORDS + len(TARGETS))
    with_copies = (torch.cat([weight, weight[TARGETS]]), torch.cat([bias, bias[TARGETS]]))
    unmasked = sampled_loss(x, *with_copies, copies, sample_log_expected, target_log_expected)
    masked = loss_of(x, weight, bias, sample_log_expected, target_log_expected)
    assert largest_difference(unmasked.detach(), masked.detach()) > 0.1


def test_sampled_loss_of_large_logits() -> None:
    x, *others = (tensor.detach() for tensor in inputs())
    loss = loss_of(1e4 * x, *others)
    assert loss.isfinite()
    assert largest_difference(loss, plain_loss(1e4 * x, *others)) <= 1e-9 * float(loss)


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize("matmul_dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_gives_nan(place: int, matmul_dtype: torch.dtype) -> None:
    arguments = [part.detach() for part in inputs(torch.float32)]
    arguments[place].flatten()[5] = float("nan")
    assert loss_of(*arguments, matmul_dtype=matmul_dtype).isnan()


@pytest.mark.usefixtures("cell")
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 1e-6)], ids=str)
def test_sampled_loss_with_all_words_is_the_full_loss(dtype: torch.dtype, bound: float) -> None:
    x, weight, bias = drawn(5, WIDTH), drawn(WORDS, WIDTH, seed=1), drawn(WORDS, seed=2)
    targets = torch.tensor([3, 0, 7, 3, 6])
    zeros = torch.zeros(WORDS, dtype=dtype)
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


def test_draws_differ_and_repeat_with_their_seed() -> None:
    sampler = LogUniform(1000, 50)
    generators = [torch.Generator().manual_seed(seed) for seed in (1, 1, 2)]
    first = [sampler.draw(generator)[0].tolist() for generator in generators]
    assert first[0] == first[1] != first[2]
    assert sampler.draw(generators[0])[0].tolist() != first[0]


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


def test_expected_counts_by_simulation() -> None:
    sampler, generator = LogUniform(20, 6), torch.Generator().manual_seed(0)
    seen, expected = torch.zeros(20, dtype=torch.float64), torch.zeros(20, dtype=torch.float64)
    times = 2000
    for _ in range(times):
        words, n_draws = sampler.draw(generator)
        seen[words] += 1 / times
        expected += sampler.log_expected(torch.arange(20), n_draws).double().exp() / times
    # The formula holds for a fixed number of draws. Here it depends on the words, which biases it a little.
    assert largest_difference(seen, expected) < 0.04
    assert abs(float(expected.sum()) - 6) < 0.1


@pytest.mark.parametrize("n_samples", [0, -1, 11])
def test_refused_numbers_of_samples(n_samples: int) -> None:
    with pytest.raises(ValueError, match=f"got {n_samples}, expected 1 to 10"):
        LogUniform(10, n_samples)
