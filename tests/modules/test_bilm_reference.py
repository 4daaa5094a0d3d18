"""The module against what AllenNLP and the original TensorFlow code gave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from bilm_cases import character_ids, largest_difference, run
from golden_files import GOLDEN_NAMES, SUMS, Golden, bilm_in, datasets_in, read_golden, tiny_batches
from numpy_bilm import NumpyBiLM

from spacy_elmo.formats import batch_to_ids_array
from spacy_elmo.modules import LstmState
from spacy_elmo.modules.scalar_mix import ScalarMix

TINY_WEIGHTS = "lm_weights.hdf5"


@pytest.fixture(params=GOLDEN_NAMES)
def reference(request: pytest.FixtureRequest, golden: Path) -> Golden:
    return read_golden(golden / request.param)


def test_character_ids(reference: Golden) -> None:
    ids = batch_to_ids_array(reference.sentences)
    np.testing.assert_array_equal(ids, reference.expected["character_ids"])


@pytest.mark.usefixtures("cell")
def test_zero_state(reference: Golden) -> None:
    for i, sentence in enumerate(reference.sentences):
        (layers,), _ = run(reference.bilm, [sentence])
        assert layers.dtype == np.float32
        assert largest_difference(layers, reference.expected[f"zero_state/{i}"]) <= 1e-5


def test_zero_state_in_one_batch(reference: Golden) -> None:
    for i, layers in enumerate(run(reference.bilm, reference.sentences)[0]):
        assert largest_difference(layers, reference.expected[f"zero_state/{i}"]) <= 1e-5


@pytest.mark.usefixtures("cell")
def test_carried_state(reference: Golden) -> None:
    state: LstmState | None = reference.bilm.lstm.zero_state(0)
    for number, batch in enumerate(reference.carry_batches):
        rows, state = run(reference.bilm, batch, state)
        for row, layers in enumerate(rows):
            assert largest_difference(layers, reference.expected[f"carried_state/{number}/{row}"]) <= 1e-5


def test_word_emb(reference: Golden) -> None:
    layers = run(reference.bilm, reference.sentences)[0][0]
    width = reference.bilm.options.projection_dim
    expected = reference.expected["word_emb"][0, : len(reference.sentences[0])]
    assert largest_difference(layers[0, :, :width], expected) <= 1e-5
    np.testing.assert_array_equal(layers[0, :, :width], layers[0, :, width:])


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


def test_tiny_top_layer_by_the_numpy_reference(tiny_fixture: Path) -> None:
    plain = NumpyBiLM(bilm_in(tiny_fixture, TINY_WEIGHTS).options, datasets_in(tiny_fixture / TINY_WEIGHTS))
    state = plain.zero_state()
    for (sentence, *_), (top, *_) in list(tiny_batches(tiny_fixture))[:3]:
        result = plain.run(sentence, state)
        assert top is not None
        assert largest_difference(result.layers[-1], top) <= 2e-6
        state = result.end


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
