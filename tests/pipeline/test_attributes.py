"""The values on a doc: what is stored, and what is read from it."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_elmo.errors import NotEmbeddedError, SettingsError
from spacy_elmo.pipeline.attributes import (
    LAYERS,
    VECTORS,
    annotate,
    has_values,
    hooks_of,
    is_not_stored,
    key,
    layers_of,
    mean_vector,
    mix_parameters,
    note_hooks,
    token_vector,
    vectors_of,
)

WEIGHTS = np.array([0.5, 0.25, 0.25], np.float32)
STORES = ["layers", "layers_float16", "mix"]


def new_doc() -> Doc:
    return Doc(spacy.blank("en").vocab, words=["the", " ", "river", "bank"])


def drawn(seed: int) -> np.ndarray:
    """Layers of `new_doc`, which float16 holds exactly; zeros at the whitespace."""
    layers = np.random.default_rng(seed).integers(-8, 9, (3, 4, 5)).astype(np.float32)
    layers[:, 1] = 0
    return layers


@pytest.mark.parametrize(
    "weights", [[0.0, 0.0, 0.0], [0.5, -1.0, 2.0], [1000.0, 999.0, -1000.0], [-800.0, -800.0, -801.0]]
)
def test_the_softmax_of_any_finite_weights(weights: list[float]) -> None:
    shares = [1 / sum(np.exp(np.clip(other - own, None, 700.0)) for other in weights) for own in weights]
    got = mix_parameters(weights)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, shares, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("store", STORES)
def test_values_of_docs_spans_and_tokens(store: str) -> None:
    doc, layers = new_doc(), drawn(0)
    annotate(doc, "elmo", layers, WEIGHTS, store)
    vectors = 0.5 * layers[0] + 0.25 * layers[1] + 0.25 * layers[2]
    np.testing.assert_array_equal(vectors_of(doc, attr="elmo"), vectors)
    np.testing.assert_array_equal(vectors_of(doc[1:3], attr="elmo"), vectors[1:3])
    np.testing.assert_array_equal(token_vector(doc[3], attr="elmo"), vectors[3])
    np.testing.assert_allclose(mean_vector(doc, attr="elmo"), vectors[[0, 2, 3]].mean(0), rtol=1e-6)
    np.testing.assert_allclose(mean_vector(doc[1:3], attr="elmo"), vectors[2], rtol=1e-6)
    assert not mean_vector(doc[1:2], attr="elmo").any()
    if store == "mix":
        with pytest.raises(NotEmbeddedError):
            layers_of(doc, attr="elmo")
    else:
        assert layers_of(doc, attr="elmo").dtype == np.float32
        np.testing.assert_array_equal(layers_of(doc[2:], attr="elmo"), layers[:, 2:])


@pytest.mark.parametrize("before", [*STORES, "none"])
@pytest.mark.parametrize("after", STORES)
def test_nothing_of_an_earlier_run_is_left(before: str, after: str) -> None:
    doc, layers = new_doc(), drawn(1)
    annotate(doc, "elmo", drawn(0), WEIGHTS, before)
    annotate(doc, "elmo", layers, WEIGHTS, after)
    np.testing.assert_array_equal(vectors_of(doc, attr="elmo"), np.tensordot(WEIGHTS, layers, 1))
    assert not is_not_stored(doc, "elmo")
    annotate(doc, "elmo", layers, WEIGHTS, "none")
    assert is_not_stored(doc, "elmo")
    assert not has_values(doc, attr="elmo")


@pytest.mark.parametrize(("store", "suffix"), [("layers", LAYERS), ("mix", VECTORS)])
def test_values_for_another_number_of_tokens_are_refused(store: str, suffix: str) -> None:
    doc = new_doc()
    annotate(doc, "elmo", drawn(0), WEIGHTS, store)
    doc.user_data[key("elmo", suffix)] = doc.user_data[key("elmo", suffix)][..., :3, :]
    for part in (doc, doc[0:2]):
        with pytest.raises(NotEmbeddedError):
            vectors_of(part, attr="elmo")


def test_one_value_beyond_float16_is_enough_to_refuse() -> None:
    layers = drawn(0)
    layers[1, 2, 3] = 65520.0  # rounds to infinity; 65519 rounds to 65504
    with pytest.raises(SettingsError, match="65504"):
        annotate(new_doc(), "elmo", layers, WEIGHTS, "layers_float16")
    layers[1, 2, 3] = 65519.0
    annotate(new_doc(), "elmo", layers, WEIGHTS, "layers_float16")


def test_only_the_pipe_whose_vectors_were_used_removes_its_note() -> None:
    doc = new_doc()
    note_hooks(doc, "other")
    annotate(doc, "elmo", drawn(0), WEIGHTS, "layers")
    assert hooks_of(doc) == "other"
    annotate(doc, "other", drawn(0), WEIGHTS, "layers")
    assert hooks_of(doc) is None


@pytest.mark.parametrize("store", STORES)
def test_values_of_other_words_are_refused(store: str) -> None:
    doc, other = new_doc(), Doc(spacy.blank("en").vocab, words=["the", " ", "lake", "bank"])
    annotate(doc, "elmo", drawn(0), WEIGHTS, store)
    for name, value in doc.user_data.items():
        other.user_data[name] = value
    for part in (other, other[1:3], other[3:]):  # the last word is the same, but at another place
        with pytest.raises(NotEmbeddedError):
            vectors_of(part, attr="elmo")
    assert vectors_of(other[:1], attr="elmo").shape == (1, 5)
