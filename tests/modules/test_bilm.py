"""The module in float64 against a plain numpy biLM: every kind of network, small."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import Case, cases, character_ids, largest_difference, random_state, row_of, run, seeds, sentence_lists
from golden_files import GOLDEN_NAMES, SUMS, Golden, bilm_in, datasets_in, read_golden, tiny_batches
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_bilm import NumpyBiLM, State
from torch import Tensor

from spacy_elmo.formats import BiLMOptions, batch_to_ids_array
from spacy_elmo.modules import BiLM, LstmState
from spacy_elmo.modules.scalar_mix import ScalarMix

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
@given(cases(), sentence_lists, st.one_of(st.none(), seeds))
def test_from_the_zero_state_or_another(case: Case, sentences: list[list[str]], seed: int | None) -> None:
    state = None if seed is None else random_state(case.bilm.options, len(sentences), seed)
    zero = case.reference.zero_state()
    compare(case, sentences, state, [zero if state is None else row_of(state, row) for row in range(len(sentences))])


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


TINY_WEIGHTS = "lm_weights.hdf5"


@pytest.fixture(params=GOLDEN_NAMES)
def reference(request: pytest.FixtureRequest, golden: Path) -> Golden:
    return read_golden(golden / request.param)


def test_character_ids(reference: Golden) -> None:
    ids = batch_to_ids_array(reference.sentences)
    np.testing.assert_array_equal(ids, reference.expected["character_ids"])


@pytest.mark.usefixtures("cell")
def test_golden_zero_state(reference: Golden) -> None:
    """Alone and in one batch; layer 0 is the word vectors twice."""
    together = run(reference.bilm, reference.sentences)[0]
    for i, sentence in enumerate(reference.sentences):
        (alone,), _ = run(reference.bilm, [sentence])
        assert alone.dtype == np.float32
        for layers in (alone, together[i]):
            assert largest_difference(layers, reference.expected[f"zero_state/{i}"]) <= 1e-5
    width = reference.bilm.options.projection_dim
    expected = reference.expected["word_emb"][0, : len(reference.sentences[0])]
    assert largest_difference(together[0][0, :, :width], expected) <= 1e-5
    np.testing.assert_array_equal(together[0][0, :, :width], together[0][0, :, width:])


@pytest.mark.usefixtures("cell")
def test_golden_carried_state(reference: Golden) -> None:
    state: LstmState | None = reference.bilm.lstm.zero_state(0)
    for number, batch in enumerate(reference.carry_batches):
        rows, state = run(reference.bilm, batch, state)
        for row, layers in enumerate(rows):
            assert largest_difference(layers, reference.expected[f"carried_state/{number}/{row}"]) <= 1e-5


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_the_numpy_reference_itself(golden: Path, name: str) -> None:
    reference = read_golden(golden / name)
    plain = NumpyBiLM(reference.bilm.options, datasets_in(golden / name / "weights.hdf5"))
    for i, sentence in enumerate(reference.sentences[:-1]):
        assert largest_difference(plain.run(sentence).layers, reference.expected[f"zero_state/{i}"]) <= 5e-6


def test_tiny_top_layer(tiny_fixture: Path) -> None:
    bilm = bilm_in(tiny_fixture, TINY_WEIGHTS)
    state: LstmState | None = None
    for sentences, expected in tiny_batches(tiny_fixture):
        rows, state = run(bilm, sentences, state or bilm.lstm.zero_state(3))
        for layers, top in zip(rows, expected, strict=True):
            assert top is None or largest_difference(layers[-1], top) <= 2e-6


def test_tiny_word_vectors(tiny_fixture: Path) -> None:
    bilm = bilm_in(tiny_fixture, TINY_WEIGHTS)
    vocabulary = (tiny_fixture / "vocab_test.txt").read_text(encoding="utf-8").splitlines()
    expected = datasets_in(tiny_fixture / "elmo_token_embeddings.hdf5")["embedding"]
    with torch.no_grad():
        encoded = bilm.char_cnn(character_ids([vocabulary], bilm.options)[0])
    assert largest_difference(encoded.numpy(), expected.astype(np.float64)) <= 2e-6


def test_tiny_sums_of_the_mean(tiny_fixture: Path) -> None:
    bilm, mix = bilm_in(tiny_fixture, TINY_WEIGHTS), ScalarMix(3)
    first, state = run(bilm, [SUMS[0][0].split(), SUMS[1][0].split()], bilm.lstm.zero_state(0))
    second, _ = run(bilm, [SUMS[2][0].split()], state)
    for layers, (_, expected) in zip([*first, *second], SUMS, strict=True):
        with torch.no_grad():
            sums = mix(torch.from_numpy(layers)[:, None])[0].sum(1)
        np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-5)


INITIAL = BiLMOptions(16, ((2, 60), (3, 40)), 2, "relu", 10, 96, 32, 2, 3.0, 3.0, True)


def initial(activation: str = "relu", seed: int = 0) -> dict[str, Tensor]:
    bilm = BiLM(dataclasses.replace(INITIAL, activation=activation))
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.fill_(9.0)
    bilm.reset_parameters(torch.Generator().manual_seed(seed))
    return bilm.state_dict()


def is_normal(values: Tensor, std: float) -> bool:
    """Whether about 68 % are within one standard deviation, and a few beyond two."""
    within = float((values.abs() < std).double().mean())
    return (
        abs(float(values.std()) / std - 1) < 0.1 and abs(within - 0.683) < 0.05 and bool((values.abs() > 2 * std).any())
    )


def is_uniform(values: Tensor, bound: float) -> bool:
    """Whether the values fill the range, and have its standard deviation."""
    filled = 0.95 * bound < float(values.abs().max()) <= bound
    return filled and abs(float(values.std()) / (bound / math.sqrt(3)) - 1) < 0.1


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_initial_character_encoder(activation: str) -> None:
    weights = initial(activation)
    embedding = weights["char_cnn.embedding.weight"]
    assert not embedding[0].any()  # the mask
    assert is_uniform(embedding[1:], 1.0)
    for k, width in enumerate((2, 3)):
        convolution = weights[f"char_cnn.convolutions.{k}.weight"]
        if activation == "relu":
            assert is_uniform(convolution, 0.1)
        else:
            assert is_normal(convolution, 1 / math.sqrt(width * 16))
        assert not weights[f"char_cnn.convolutions.{k}.bias"].any()
    for k in range(2):
        for part, bias in (("carry", -2.0), ("transform", 0.0)):
            assert is_normal(weights[f"char_cnn.highways.{k}.{part}.weight"], 0.1)  # 100 filters
            assert (weights[f"char_cnn.highways.{k}.{part}.bias"] == bias).all()
    assert is_normal(weights["char_cnn.projection.weight"], 0.1)
    assert not weights["char_cnn.projection.bias"].any()


def test_initial_lstm() -> None:
    weights = initial()
    for k in range(2):
        # TensorFlow's W_0 has 32 + 32 inputs and 4 * 96 outputs, its projection 96 and 32
        for name in ("input_weight", "recurrent_weight"):
            assert is_uniform(weights[f"lstm.layers.{k}.{name}"], math.sqrt(6 / (64 + 384)))
        assert is_uniform(weights[f"lstm.layers.{k}.projection"], math.sqrt(6 / (96 + 32)))
        assert not weights[f"lstm.layers.{k}.bias"].any()


def test_only_the_generator_decides() -> None:
    one, same, other = ({n: w for n, w in initial(seed=k).items() if not n.endswith("bias")} for k in (0, 0, 1))
    for name, values in one.items():
        assert torch.equal(values, same[name])
        assert not torch.equal(values, other[name])
