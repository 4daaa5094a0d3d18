"""Which input products are taken when: all positions get their own row's, and none is taken too often."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.inference.lstm.packing import Packing
from spacy_elmo.inference.lstm.plan import Plan, plan_positions, plan_words

CPU = torch.device("cpu")
texts = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=8)


def sources(plan: Plan, packing: Packing, rows: torch.Tensor) -> list[int]:
    """What each position multiplies, were the products the rows themselves."""
    bounds = np.append(packing.offsets, len(packing.source))
    found: list[int] = []
    for chunk, (first, steps, begin, count) in zip(plan.chunks, plan.table(False).tolist(), strict=True):
        assert (chunk.steps, chunk.fresh) == (slice(first, first + steps), slice(begin, begin + count))
        products = torch.cat([rows[plan.kept], plan.fresh_rows(rows, chunk)])
        assert len(products) <= plan.rows
        here = slice(*(int(bounds[step]) for step in (chunk.steps.start, chunk.steps.stop)))
        found += products[plan.places[here]].tolist()
    return found


def steps_of(plan: Plan) -> list[int]:
    return [step for chunk in plan.chunks for step in range(chunk.steps.start, chunk.steps.stop)]


@given(texts, st.integers(0, 4), st.integers(1, 20))
def test_words(text: list[list[int]], limit: int, most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    words = np.concatenate(text)[packing.source]
    plan = plan_words(packing, words, limit, most, CPU)
    assert sources(plan, packing, torch.arange(7)) == words.tolist()
    assert steps_of(plan) == list(range(len(packing.active)))
    kept = np.asarray(plan.kept).tolist()
    times = np.bincount(words, minlength=7)
    repeated = [word for word in range(7) if times[word] > 1]
    assert len(kept) == plan.n_kept == min(limit, len(repeated))
    assert set(kept) <= set(repeated)
    assert all(times[word] <= min(times[kept], default=99) for word in set(repeated) - set(kept))
    assert plan.fresh is not None
    assert plan.n_kept + len(plan.fresh) == len(kept) + sum(1 for word in words if word not in kept)


@given(texts, st.integers(1, 20))
def test_positions(text: list[list[int]], most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    plan = plan_positions(packing, most, CPU)
    assert sources(plan, packing, torch.arange(len(packing.source))) == list(range(len(packing.source)))
    assert steps_of(plan) == list(range(len(packing.active)))
    assert plan.fresh is None
    for chunk in plan.chunks:
        active = packing.active[chunk.steps]
        assert len(active) == 1 or active.sum() <= most
    for chunk, after in zip(plan.chunks, plan.chunks[1:]):
        assert packing.active[chunk.steps].sum() + packing.active[after.steps.start] > most


@given(texts, st.integers(1, 20))
def test_read_backward(text: list[list[int]], most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    plan = plan_positions(packing, most, CPU)
    forward, backward = (plan.table(way).tolist() for way in (False, True))
    n = len(packing.active)
    assert backward == [[n - first - steps, steps, *fresh] for first, steps, *fresh in forward[::-1]]
    assert [first for first, *_ in backward] == np.cumsum([0, *(steps for _, steps, *_ in backward)])[:-1].tolist()
