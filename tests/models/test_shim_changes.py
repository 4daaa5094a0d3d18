"""What was computed from the shim's weights is not used after they have changed; and a copy has an id of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from thinc.api import SGD

from spacy_elmo.errors import SettingsError
from spacy_elmo.inference import Engine
from spacy_elmo.models.shim import BiLMShim
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.loading import Precision, dtype_of

SENTENCES = [["It", "was", "late", "."], ["No"]]
NAME = "lstm.layers.1.input_weight"


@pytest.fixture
def shims(golden: Path) -> list[BiLMShim]:
    """Two, of other weights with the same sizes. Engine and fingerprint of the first were computed from a network."""
    first, second = (BiLMShim(*(str(golden / "random_a" / name) for name in ("options.json", "weights.hdf5")))
                     for _ in range(2))  # fmt: skip
    with torch.no_grad():
        second.unfreeze().get_parameter(NAME).mul_(2)
    first.unfreeze()
    assert vectors(first).any()
    assert first.compute_fingerprint() != second.compute_fingerprint()
    return [first, second]


def vectors(shim: BiLMShim) -> np.ndarray:
    return np.concatenate(shim.prepare_engine().run(SENTENCES), 1)


def assert_like(shim: BiLMShim, other: BiLMShim) -> None:
    """Compare with a shim that has read the other's bytes, and has computed nothing before."""
    fresh = BiLMShim(None, None).from_bytes(other.to_bytes())
    np.testing.assert_allclose(vectors(shim), vectors(fresh), atol=1e-6)
    assert shim.compute_fingerprint() == fresh.compute_fingerprint()


@pytest.mark.parametrize("unfrozen", [False, True])
def test_after_weights_were_loaded(shims: list[BiLMShim], unfrozen: bool) -> None:
    first, second = shims
    before = vectors(first)
    first.from_bytes(second.to_bytes())
    if unfrozen:
        first.unfreeze()
    assert_like(first, second)
    assert np.abs(vectors(first) - before).max() > 1e-3


def test_after_an_update(shims: list[BiLMShim]) -> None:
    """One step of plain SGD: w - rate * gradient."""
    shim, other = shims
    expected = shim.to_arrays()[NAME] - 0.5
    parameter = shim.unfreeze().get_parameter(NAME)
    parameter.grad = torch.ones_like(parameter)
    shim.finish_update(SGD(0.5, L2=0.0, grad_clip=0.0))
    np.testing.assert_allclose(shim.to_arrays()[NAME], expected, atol=1e-6)
    assert parameter.grad is None
    assert_like(shim, other.from_bytes(shim.to_bytes()))


def test_inside_and_after_other_parameters(shims: list[BiLMShim]) -> None:
    shim, other = shims
    before, given = vectors(shim), other.to_arrays()[NAME]
    kept = given.copy()
    with shim.use_params({(shim.id, NAME): given, (shim.id + 10_000, NAME): np.zeros(1)}):
        assert_like(shim, other)
        shim.unfreeze().get_parameter(NAME).data.zero_()
    np.testing.assert_array_equal(given, kept)  # they are the caller's, and stay so
    np.testing.assert_array_equal(vectors(shim), before)
    with pytest.raises(KeyboardInterrupt), shim.use_params({(shim.id, NAME): given}):
        raise KeyboardInterrupt
    np.testing.assert_array_equal(vectors(shim), before)


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_the_settings_are_those_of_every_engine(golden: Path, precision: Precision) -> None:
    """Of the one for a network, too, as after an update."""
    files = [str(golden / "random_a" / name) for name in ("options.json", "weights.hdf5")]
    shim = BiLMShim(*files, precision, cached_words=3)
    shim.unfreeze()
    expected = Engine.of(load_bilm(*files), dtype_of(precision, torch.device("cpu")), 3).run(SENTENCES)
    np.testing.assert_array_equal(vectors(shim), np.concatenate(expected, 1))
    assert len(shim.prepare_engine().words) == 3


def test_copies_have_ids_of_their_own(shims: list[BiLMShim]) -> None:
    """An optimizer stores its state under the id, so that with the same one two copies would share it."""
    ids = [shim.id for shim in (*shims, shims[0].copy(), shims[0].copy())]
    assert len(set(ids)) == 4


@pytest.mark.parametrize("cached_words", [-1, True, 2.0, "3", None])
def test_numbers_of_words_that_can_not_be_cached(cached_words: Any) -> None:
    with pytest.raises(SettingsError, match="cached_words"):
        BiLMShim(None, None, cached_words=cached_words)
