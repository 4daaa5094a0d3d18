"""The output layer's losses and the sampler against plain formulations."""

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

from spacy_elmo.modules import softmax
from spacy_elmo.modules.softmax import LogUniform, Softmax, sampled_loss

WORDS, WIDTH = 12, 4
SAMPLE = torch.tensor([0, 2, 3, 7, 9])
# hits at the sample's first and last word and inside; misses below, between and above
TARGETS = torch.tensor([0, 9, 3, 1, 8, 11, 3])


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(0, scale, shape))


def inputs() -> tuple[Tensor, ...]:
    """x, weight, bias, target_weight, target_bias, sample_log_expected, target_log_expected; the first five vary."""
    rows, samples = len(TARGETS), len(SAMPLE)
    shapes = [(rows, WIDTH), (samples, WIDTH), (samples,), (rows, WIDTH), (rows,), (samples,), (rows,)]
    made = [drawn(*shape, seed=i) for i, shape in enumerate(shapes)]
    return *(x.requires_grad_() for x in made[:5]), *made[5:]


def loss_of(*given_inputs: Tensor) -> Tensor:
    x, *others = given_inputs
    return sampled_loss(x, TARGETS, SAMPLE, *others)


def plain_loss(*given_inputs: Tensor) -> Tensor:
    """One row after the other, the words to be told apart written out."""
    x, weight, bias, target_weight, target_bias, sample_log_expected, target_log_expected = given_inputs
    total = x.new_zeros(())
    for row, target in enumerate(TARGETS.tolist()):
        true = x[row] @ target_weight[row] + target_bias[row] - target_log_expected[row]
        logits = [true]
        for k, word in enumerate(SAMPLE.tolist()):
            if word != target:
                logits.append(x[row] @ weight[k] + bias[k] - sample_log_expected[k])
        total = total + torch.logsumexp(torch.stack(logits), 0) - true
    return total


@pytest.mark.parametrize("rows", [128, 3, 1])
def test_sampled_loss(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(softmax, "SAMPLED_ROWS", rows)
    mine, plain = inputs(), inputs()
    got, expected = loss_of(*mine), plain_loss(*plain)
    assert largest_difference(got.detach(), expected.detach()) <= 1e-12
    (3 * got).backward()
    (3 * expected).backward()
    for a, b in zip(mine[:5], plain[:5], strict=True):
        assert largest_difference(a.grad, b.grad) <= 1e-12  # type: ignore[arg-type]


def test_sampled_loss_by_numeric_gradients() -> None:
    assert torch.autograd.gradcheck(loss_of, inputs())


def test_sampled_loss_is_masked() -> None:
    """Without the mask the value would be another one: the hits above are real."""
    given_inputs = inputs()
    missed = sampled_loss(given_inputs[0], torch.full_like(TARGETS, 11), SAMPLE, *given_inputs[1:])
    assert largest_difference(missed.detach(), loss_of(*given_inputs).detach()) > 0.1


def test_sampled_loss_of_large_logits() -> None:
    x, *others = (given.detach() for given in inputs())
    loss = loss_of(1e4 * x, *others)
    assert loss.isfinite()
    assert largest_difference(loss, plain_loss(1e4 * x, *others)) <= 1e-9 * float(loss)


def test_sampled_loss_with_all_words_is_the_full_loss() -> None:
    everything = torch.arange(WORDS)
    x, weight, bias = drawn(5, WIDTH), drawn(WORDS, WIDTH, seed=1), drawn(WORDS, seed=2)
    targets = torch.tensor([3, 0, 11, 3, 7])
    zeros = torch.zeros(WORDS, dtype=torch.float64)
    got = sampled_loss(x, targets, everything, weight, bias, weight[targets], bias[targets], zeros, zeros[:5])
    expected = F.cross_entropy(x @ weight.t() + bias, targets, reduction="sum")
    assert largest_difference(got, expected) <= 1e-12


@pytest.mark.parametrize("rows", [0, 1, 5, 12])
def test_full_loss(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(softmax, "ROWS", 5)
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


def test_softmax_starts_as_bilm_tf_does() -> None:
    layer = Softmax(4000, 16)
    layer.reset_parameters(generator=torch.Generator().manual_seed(0))
    assert not layer.bias.any()
    assert abs(float(layer.weight.detach().std()) - 0.25) < 0.005


def one_by_one(n_words: int, seed: int) -> Iterator[int]:
    """The sampler's words before it looks which are new."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        uniform = float(torch.rand(1, generator=generator, dtype=torch.float64))
        yield min(int(math.exp(uniform * math.log(n_words + 1)) - 1), n_words - 1)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 30), seeds)
def test_draws_until_enough_distinct_words_have_come(data: st.DataObject, n_words: int, seed: int) -> None:
    n_samples = data.draw(st.integers(1, n_words))
    words, tries = LogUniform(n_words, n_samples, torch.Generator().manual_seed(seed)).draw()
    found: set[int] = set()
    expected_tries = 0
    for word in one_by_one(n_words, seed):
        expected_tries += 1
        found.add(word)
        if len(found) == n_samples:
            break
    assert words.tolist() == sorted(found)
    assert tries == expected_tries
    assert words.dtype == torch.int64


def test_draws_differ_and_repeat_with_their_seed() -> None:
    samplers = [LogUniform(1000, 50, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    first = [sampler.draw()[0].tolist() for sampler in samplers]
    assert first[0] == first[1] != first[2]
    assert samplers[0].draw()[0].tolist() != first[0]


def test_single_words_come_with_their_probability() -> None:
    n_words, times = 8, 4000
    sampler = LogUniform(n_words, 1, torch.Generator().manual_seed(0))
    counts = np.bincount([int(sampler.draw()[0]) for _ in range(times)], minlength=n_words) / times
    ranks = np.arange(n_words)
    probabilities = np.log((ranks + 2) / (ranks + 1)) / np.log(n_words + 1)
    assert abs(probabilities.sum() - 1) < 1e-12
    assert np.abs(counts - probabilities).max() < 4 * math.sqrt(0.25 / times)
    np.testing.assert_allclose(sampler.log_expected(torch.arange(n_words), 1).numpy(), np.log(probabilities), rtol=1e-5)


@pytest.mark.parametrize(("n_words", "tries"), [(8, 5), (50_000, 9000), (793_471, 12_345)])
def test_expected_counts(n_words: int, tries: int) -> None:
    """1 - (1 - p)^tries, as TensorFlow takes it."""
    sampler = LogUniform(n_words, 1, torch.Generator())
    ranks = np.unique(np.linspace(0, n_words - 1, 50).astype(np.int64))
    p = np.log1p(1 / (ranks + 1)) / np.log(n_words + 1)
    expected = np.log(-np.expm1(tries * np.log1p(-p)))
    got = sampler.log_expected(torch.from_numpy(ranks), tries)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_expected_counts_by_simulation() -> None:
    sampler = LogUniform(20, 6, torch.Generator().manual_seed(0))
    seen, expected = torch.zeros(20, dtype=torch.float64), torch.zeros(20, dtype=torch.float64)
    times = 2000
    for _ in range(times):
        words, tries = sampler.draw()
        seen[words] += 1 / times
        expected += sampler.log_expected(torch.arange(20), tries).double().exp() / times
    # the formula holds for a fixed number of tries; here it stops at the sixth word, which biases it a little
    assert largest_difference(seen, expected) < 0.04
    assert abs(float(expected.sum()) - 6) < 0.1


@pytest.mark.parametrize("n_samples", [0, -1, 11])
def test_refused_numbers_of_samples(n_samples: int) -> None:
    with pytest.raises(ValueError, match=f"got {n_samples}, expected 1 to 10"):
        LogUniform(10, n_samples, torch.Generator())
