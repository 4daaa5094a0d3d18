"""Each position gets the input sum of its own row, and no input sum is computed more often than the plan allows."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from spacy_elmo.inference.packing import Packing, Plan, plan_positions, plan_words

CPU = torch.device("cpu")
texts = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=9), min_size=1, max_size=8)


def sources(plan: Plan, packing: Packing, rows: torch.Tensor) -> list[int]:
    """Return the row of the input whose input sum each position reads.

    rows: *Shape:* (rows,), numbers of the rows, which stand for their input sums.
    """
    bounds = np.append(packing.offsets, len(packing.source))
    read: list[int] = []
    for chunk, (first, steps, begin, count) in zip(plan.chunks, plan.table(False).tolist(), strict=True):
        assert (chunk.steps, chunk.rows) == (slice(first, first + steps), slice(begin, begin + count))
        sums = torch.cat([rows[plan.precomputed], plan.rows_of(rows, chunk)])
        assert len(sums) <= plan.n_sums
        here = slice(*(int(bounds[step]) for step in (chunk.steps.start, chunk.steps.stop)))
        read += sums[plan.places[here]].tolist()
    return read


def steps_of(plan: Plan) -> list[int]:
    return [step for chunk in plan.chunks for step in range(chunk.steps.start, chunk.steps.stop)]


@given(texts, st.integers(0, 4), st.integers(1, 20))
def test_plan_of_words(text: list[list[int]], limit: int, most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    words = np.concatenate(text)[packing.source]
    plan = plan_words(packing, words, limit, most, CPU)
    assert sources(plan, packing, torch.arange(7)) == words.tolist()
    assert steps_of(plan) == list(range(len(packing.active)))
    precomputed = np.asarray(plan.precomputed).tolist()
    times = np.bincount(words, minlength=7)
    repeated = [word for word in range(7) if times[word] > 1]
    assert len(precomputed) == plan.n_precomputed == min(limit, len(repeated))
    assert set(precomputed) <= set(repeated)
    assert all(times[word] <= min(times[precomputed], default=99) for word in set(repeated) - set(precomputed))
    assert plan.by_chunk is not None
    assert len(plan.by_chunk) == sum(1 for word in words if word not in precomputed)


@given(texts, st.integers(1, 20))
def test_plan_of_positions(text: list[list[int]], most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    plan = plan_positions(packing, most, CPU)
    assert sources(plan, packing, torch.arange(len(packing.source))) == list(range(len(packing.source)))
    assert steps_of(plan) == list(range(len(packing.active)))
    assert plan.by_chunk is None
    for chunk in plan.chunks:
        active = packing.active[chunk.steps]
        assert len(active) == 1 or active.sum() <= most
    for chunk, after in zip(plan.chunks, plan.chunks[1:]):
        assert packing.active[chunk.steps].sum() + packing.active[after.steps.start] > most


@given(texts, st.integers(1, 20))
def test_table_of_chunks_read_backward(text: list[list[int]], most: int) -> None:
    packing = Packing.of([len(sentence) for sentence in text])
    plan = plan_positions(packing, most, CPU)
    forward, backward = (plan.table(way).tolist() for way in (False, True))
    n = len(packing.active)
    assert backward == [[n - first - steps, steps, *rows] for first, steps, *rows in forward[::-1]]
    assert [first for first, *_ in backward] == np.cumsum([0, *(steps for _, steps, *_ in backward)])[:-1].tolist()
