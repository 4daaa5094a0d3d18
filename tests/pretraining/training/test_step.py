"""A training step: dropout, the scale of the loss, the parts that run side by side, and the matmul type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from spacy_elmo.formats import BiLMOptions
from spacy_elmo.formats.characters import boundary_ids, words_to_ids
from spacy_elmo.modules import BiLM, LstmState
from spacy_elmo.modules.char_cnn import CharCnn
from spacy_elmo.pretraining import step as step_module
from spacy_elmo.pretraining.step import Batch, Workers, inverted_dropout

OPTIONS = BiLMOptions(3, ((1, 5), (2, 7)), 1, "relu", 12, 10, 6, 2, 3.0, 3.0, True)
STEPS, STREAMS = 5, 4


class SumOfTop:
    """A scorer whose loss is the sum of the top layer's outputs."""

    def __init__(self) -> None:
        self.types: list[torch.dtype] = []

    def leaves(self) -> list[Tensor]:
        return []

    def loss(
        self, leaves: Sequence[Tensor], top: Tensor, direction: int, part: slice, matmul_dtype: torch.dtype
    ) -> Tensor:
        self.types.append(matmul_dtype)
        return top.sum()


def gradients(
    n_threads: int, rate: float, seed: int, scale: float = 1.0, matmul: torch.dtype = torch.float32
) -> tuple[step_module.Gradients, SumOfTop]:
    bilm, scorer = BiLM(OPTIONS), SumOfTop()
    bilm.reset_parameters(torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    characters = torch.cat([torch.from_numpy(boundary_ids(12)), torch.from_numpy(words_to_ids(["a", "bc"], 12))])
    inputs = torch.randint(0, 4, (2, STEPS, STREAMS), generator=generator)
    keep = torch.randint(0, 2, (STEPS, STREAMS, 1), generator=generator).float()
    keep[0] = 1
    batch = Batch(characters, inputs, inputs, keep)
    state = LstmState(*(torch.randn(part.shape, generator=generator) for part in bilm.lstm.zero_state(STREAMS)))
    workers = Workers(bilm, n_threads, matmul, rate)
    try:
        return workers.gradients(batch, scorer, state, scale, seed), scorer
    finally:
        workers.close()


def test_inverted_dropout() -> None:
    x = torch.rand(200, 100, generator=torch.Generator().manual_seed(2)) + 1
    drop = inverted_dropout(0.25, 7)
    assert drop is not None
    first, second = drop(x), drop(x)
    for dropped in (first, second):
        kept = dropped != 0
        assert abs(float(kept.float().mean()) - 0.75) < 0.02
        torch.testing.assert_close(dropped[kept], x[kept] / 0.75)
    assert not torch.equal(first, second)
    again, other = inverted_dropout(0.25, 7), inverted_dropout(0.25, 8)
    assert again is not None
    assert other is not None
    assert torch.equal(again(x), first)
    assert not torch.equal(other(x), first)
    assert inverted_dropout(0.0, 7) is None


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

    monkeypatch.setattr(step_module, "inverted_dropout", to_zero)
    groups = max(1, n_threads // 2)
    streams = STREAMS // groups
    for seed in (0, 1):  # no seed of one update is one of the next update
        assert gradients(n_threads, 0.25, seed)[0].loss == 0
        assert len(calls) == 2 * groups * (seed + 1)
    assert list(calls.values()) == [[(1, STEPS, streams, 6)] * 2 + [(STEPS * streams, 6)]] * len(calls)


def test_the_loss_is_scaled_and_the_parts_make_no_difference() -> None:
    one, two, scaled = (gradients(*given)[0] for given in ((1, 0.0, 0), (4, 0.0, 5), (1, 0.0, 0, 3.0)))
    assert one.loss == pytest.approx(two.loss, rel=1e-5)
    assert scaled.loss == pytest.approx(3 * one.loss, rel=1e-6)
    for a, b in zip([*one.dense, *one.state], [*two.dense, *two.state], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    for a, c in zip(one.dense, scaled.dense, strict=True):
        torch.testing.assert_close(3 * a, c, rtol=1e-4, atol=1e-5)


def test_the_matmul_type_reaches_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[torch.dtype] = []
    scan, encode = step_module.scan_layers, CharCnn.forward

    def watched_scan(*given: Any, matmul_dtype: torch.dtype, **others: Any) -> Any:
        types.append(matmul_dtype)
        return scan(*given, matmul_dtype=matmul_dtype, **others)

    def watched_encode(self: CharCnn, ids: Tensor, matmul_dtype: torch.dtype) -> Tensor:
        types.append(matmul_dtype)
        return encode(self, ids, matmul_dtype)

    monkeypatch.setattr(step_module, "scan_layers", watched_scan)
    monkeypatch.setattr(CharCnn, "forward", watched_encode)
    _, scorer = gradients(1, 0.0, 0, matmul=torch.bfloat16)
    assert types + scorer.types == [torch.bfloat16] * (1 + 2 + 2)  # all words at once, both directions
