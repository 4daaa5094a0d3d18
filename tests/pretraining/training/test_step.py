"""Dropout in a training step: what it does to values, where it is applied, and that each part has its own masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import boundary_ids, words_to_ids
from spacy_elmo.modules import BiLM
from spacy_elmo.pretraining.training import step as step_module
from spacy_elmo.pretraining.training.step import Batch, Workers

OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 10, 6, 2, 3.0, 3.0, True)
STEPS, STREAMS = 5, 4


class SumOfTop:
    """A scorer whose loss is the sum of the top layer's outputs."""

    def leaves(self) -> list[Tensor]:
        return []

    def loss(
        self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
    ) -> Tensor:
        return top.sum()


def gradients(n_threads: int, rate: float, seed: int, scale: float = 1.0) -> step_module.Gradients:
    bilm = BiLM(OPTIONS)
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    characters = torch.cat([torch.from_numpy(boundary_ids(12)), torch.from_numpy(words_to_ids(["a", "bc"], 12))])
    inputs = torch.randint(0, 4, (2, STEPS, STREAMS), generator=torch.Generator().manual_seed(1))
    batch = Batch(characters, inputs, inputs, torch.ones(STEPS, STREAMS, 1))
    workers = Workers(bilm, n_threads, torch.float32, rate)
    try:
        return workers.gradients(batch, SumOfTop(), bilm.lstm.zero_state(STREAMS), scale, seed)
    finally:
        workers.close()


def test_inverted_dropout() -> None:
    x = torch.rand(200, 100, generator=torch.Generator().manual_seed(2)) + 1
    drop = step_module._dropout(0.25, 7)
    assert drop is not None
    first, second = drop(x), drop(x)
    for dropped in (first, second):
        kept = dropped != 0
        assert abs(float(kept.float().mean()) - 0.75) < 0.02
        torch.testing.assert_close(dropped[kept], x[kept] / 0.75)
    assert not torch.equal(first, second)
    again, other = step_module._dropout(0.25, 7), step_module._dropout(0.25, 8)
    assert again is not None
    assert other is not None
    assert torch.equal(again(x), first)
    assert not torch.equal(other(x), first)
    assert step_module._dropout(0.0, 7) is None


@pytest.mark.parametrize("n_threads", [1, 4])
def test_inputs_of_layers_and_the_top_are_dropped(monkeypatch: pytest.MonkeyPatch, n_threads: int) -> None:
    calls: dict[int, list[tuple[int, ...]]] = {}

    def to_zero(rate: float, seed: int) -> Callable[[Tensor], Tensor]:
        assert rate == 0.25
        shapes = calls.setdefault(seed, [])

        def drop(x: Tensor) -> Tensor:
            shapes.append(tuple(x.shape))
            return x * 0

        return drop

    monkeypatch.setattr(step_module, "_dropout", to_zero)
    groups = max(1, n_threads // 2)
    streams = STREAMS // groups
    for seed in (0, 1):  # no seed of one update is one of the next update
        assert gradients(n_threads, 0.25, seed).loss == 0
        assert len(calls) == 2 * groups * (seed + 1)
    assert list(calls.values()) == [[(1, STEPS, streams, 6)] * 2 + [(STEPS * streams, 6)]] * len(calls)


def test_the_loss_is_scaled_and_without_dropout_the_parts_make_no_difference() -> None:
    one, two, scaled = gradients(1, 0.0, 0), gradients(4, 0.0, 5), gradients(1, 0.0, 0, scale=3.0)
    assert one.loss == pytest.approx(two.loss, rel=1e-5)
    assert scaled.loss == pytest.approx(3 * one.loss, rel=1e-6)
    for a, b, c in zip(one.dense, two.dense, scaled.dense, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(3 * a, c, rtol=1e-4, atol=1e-5)
