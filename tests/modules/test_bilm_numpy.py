"""The module in float64 against a plain numpy biLM: every kind of network, small."""

from __future__ import annotations

import pytest
import torch
from bilm_cases import (
    Case,
    cases,
    character_ids,
    largest_difference,
    random_state,
    row_of,
    run,
    seeds,
    sentence_lists,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_bilm import State

from spacy_elmo.modules import LstmState

EXACT = 1e-9
few = settings(max_examples=30, deadline=None)


def compare(case: Case, sentences: list[list[str]], state: LstmState | None, starts: list[State]) -> LstmState:
    """Assert that the module, from `state`, gives each sentence what numpy gives from its start; the new state."""
    rows, end = run(case.bilm, sentences, state)
    for row, (sentence, start) in enumerate(zip(sentences, starts, strict=True)):
        expected = case.reference.run(sentence, start)
        assert largest_difference(rows[row], expected.layers) <= EXACT
        for got, wanted in zip(row_of(end, row), expected.end, strict=True):
            assert largest_difference(got, wanted) <= EXACT
    return end


@few
@given(cases(), sentence_lists)
def test_zero_state(case: Case, sentences: list[list[str]]) -> None:
    compare(case, sentences, None, [case.reference.zero_state()] * len(sentences))


@pytest.mark.slow
@few
@given(cases(), sentence_lists, seeds)
def test_given_state(case: Case, sentences: list[list[str]], seed: int) -> None:
    state = random_state(case.bilm.options, len(sentences), seed)
    compare(case, sentences, state, [row_of(state, row) for row in range(len(sentences))])


@pytest.mark.slow
@few
@given(cases(), sentence_lists, sentence_lists)
def test_carried_over_batches_of_other_sizes(case: Case, first: list[list[str]], second: list[list[str]]) -> None:
    zero = [case.reference.zero_state()]
    state = compare(case, first, case.bilm.lstm.zero_state(1), zero * len(first))
    starts = [row_of(state, row) for row in range(len(first))] + zero * len(second)
    end = compare(case, second, state, starts[: len(second)])
    assert end.h.shape[2] == max(len(first), len(second))
    for row in range(len(second), len(first)):  # rows that did not run resume later
        for got, wanted in zip(row_of(end, row), row_of(state, row), strict=True):
            assert largest_difference(got, wanted) == 0


@few
@given(cases(), sentence_lists)
def test_alone_or_in_a_batch(case: Case, sentences: list[list[str]]) -> None:
    together, end = run(case.bilm, sentences)
    for row, sentence in enumerate(sentences):
        (alone,), state = run(case.bilm, [sentence])
        assert largest_difference(together[row], alone) <= 1e-12
        for got, wanted in zip(row_of(end, row), row_of(state, 0), strict=True):
            assert largest_difference(got, wanted) <= 1e-12


@pytest.mark.slow
@few
@given(cases(), sentence_lists, st.integers(1, 3))
def test_padding_changes_nothing(case: Case, sentences: list[list[str]], more: int) -> None:
    ids = character_ids(sentences, case.bilm.options)
    padded = torch.cat([ids, ids.new_zeros(len(ids), more, ids.shape[2])], 1)
    with torch.no_grad():
        narrow, wide = case.bilm(ids), case.bilm(padded)
    longest = ids.shape[1] + 2
    assert largest_difference(wide.layers[:, :, :longest], narrow.layers) <= 1e-12
    assert not wide.layers[:, :, longest:].any()
    assert wide.mask.sum(1).tolist() == narrow.mask.sum(1).tolist() == [len(words) + 2 for words in sentences]
    assert largest_difference(wide.state.c, narrow.state.c) <= 1e-12


@pytest.mark.slow
@few
@given(cases(), sentence_lists)
def test_layers_hold_the_boundaries_and_zeros_behind_the_end(case: Case, sentences: list[list[str]]) -> None:
    with torch.no_grad():
        output = case.bilm(character_ids(sentences, case.bilm.options))
    for row, sentence in enumerate(sentences):
        expected = case.reference.run(sentence)
        last = len(sentence) + 1
        p = case.bilm.options.projection_dim
        assert largest_difference(output.layers[0, row, 0, :p].numpy(), case.reference.encode("<S>")) <= EXACT
        assert largest_difference(output.layers[0, row, last, p:].numpy(), case.reference.encode("</S>")) <= EXACT
        # the first layer has no skip connection: its output at the ends is the recurrent state itself
        assert largest_difference(output.layers[1, row, last, :p].numpy(), expected.end.h[0, 0]) <= EXACT
        assert largest_difference(output.layers[1, row, 0, p:].numpy(), expected.end.h[0, 1]) <= EXACT
        assert not output.layers[:, row, last + 1 :].any()


@pytest.mark.slow
@few
@given(cases(), sentence_lists)
def test_empty_sentences(case: Case, sentences: list[list[str]]) -> None:
    rows, end = run(case.bilm, [[], *sentences, []])
    assert rows[0].shape == rows[-1].shape == (case.bilm.options.layers, 0, case.bilm.options.width)
    wanted = case.reference.run([]).end
    for got, expected in zip(row_of(end, 0), wanted, strict=True):
        assert largest_difference(got, expected) <= EXACT
    (only,), _ = run(case.bilm, [[]])
    assert only.shape == rows[0].shape
