"""The compiled loop of the sampled softmax against its torch twin, and against numpy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from spacy_elmo.modules.softmax import _to_probabilities

ROWS = 7
WORDS = [1, 5, 33, 64, 130, 1000]
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


def drawn(words: int, dtype: torch.dtype, scale: float = 3.0) -> Block:
    rng = np.random.default_rng(words)

    def normal(*shape: int) -> Tensor:
        return torch.from_numpy(rng.normal(0, scale, shape).astype(np.float32))

    hits = torch.tensor([-1, 0, words - 1, -1, words // 2, -1, 0], dtype=torch.int32)
    return Block(normal(ROWS, words).to(dtype), normal(words), normal(ROWS), hits)


def run(block: Block) -> Result:
    logits, losses, d_true = block.logits.clone(), torch.full((ROWS,), 9.0), torch.full((ROWS,), 9.0)
    _to_probabilities(logits, block.offset, block.true_logits, block.hits, losses, d_true)
    return Result(logits, losses, d_true)


def assert_close(got: Result, expected: Result) -> None:
    """Within a unit in bfloat16's last place, or float32 sums in another order."""
    rtol = 2**-7 if got.probabilities.dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(got.probabilities, expected.probabilities, rtol=rtol, atol=1e-9, equal_nan=True)
    torch.testing.assert_close(got.losses, expected.losses, rtol=2e-6, atol=2e-6, equal_nan=True)
    torch.testing.assert_close(got.d_true, expected.d_true, rtol=2e-6, atol=2e-6, equal_nan=True)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("scale", [0.01, 3.0, 100.0])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_equals_torch(twice: Callable, words: int, scale: float, dtype: torch.dtype) -> None:
    block = drawn(words, dtype, scale)
    got, expected = twice(lambda: run(block))
    assert all(part.isfinite().all() for part in got)
    assert_close(got, expected)


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.usefixtures("cell")
def test_equals_numpy(words: int, dtype: torch.dtype) -> None:
    block = drawn(words, dtype)
    logits = block.logits.double().numpy() + block.offset.double().numpy()
    for row, hit in enumerate(block.hits.tolist()):
        if hit >= 0:
            logits[row, hit] = -np.inf
    all_logits = np.concatenate([logits, block.true_logits.double().numpy()[:, None]], 1)
    exponentials = np.exp(all_logits)
    p = exponentials / exponentials.sum(1, keepdims=True)
    got = run(block)
    bound = 2**-8 if dtype == torch.bfloat16 else 2e-6
    np.testing.assert_allclose(got.probabilities.double().numpy(), p[:, :-1], rtol=bound, atol=1e-9)
    np.testing.assert_allclose(got.losses.numpy(), -np.log(p[:, -1]), rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(got.d_true.numpy(), p[:, -1] - 1, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_masked_words_get_nothing(twice: Callable, dtype: torch.dtype) -> None:
    block = drawn(33, dtype)
    for got in twice(lambda: run(block)):
        for row, hit in enumerate(block.hits.tolist()):
            assert bool((got.probabilities[row] == 0).any()) is (hit >= 0)
            assert hit < 0 or got.probabilities[row, hit] == 0


@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("where", [0, 3, 63, 64, 129], ids="word {}".format)
@pytest.mark.parametrize("name", ["logits", "offset", "true_logits"])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_is_no_number_is_seen_in_the_loss(
    twice: Callable, value: float, where: int, name: str, dtype: torch.dtype
) -> None:
    block = drawn(130, dtype)
    damaged = getattr(block, name).clone()
    index = {"logits": (3, where), "offset": (where,), "true_logits": (3,)}[name]
    damaged[index] = value
    for got in twice(lambda: run(block._replace(**{name: damaged}))):
        assert not got.losses[3].isfinite()
        if name != "offset":
            assert got.losses[[0, 1, 2, 4, 5, 6]].isfinite().all()
