"""The layer's gradient and batches, and what it refuses."""

from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from thinc.api import Model

from spacy_elmo.errors import AnnotationError, SettingsError
from spacy_elmo.tasks.entailment import model as module
from spacy_elmo.tasks.entailment.model import build_entailment
from spacy_elmo.tasks.entailment.pairs import make_pair

NLP = spacy.blank("en")
WIDTH = 4
PAIRS = [("a b c d", "b"), ("a", "c d e"), ("", "a"), ("d d", "e f")]


def given_vectors(vectors: list[Any], gradients: list[Any]) -> Model[list[Doc], Any]:
    """A tok2vec that returns given vectors and notes their gradients."""

    def forward(model: Any, docs: list[Doc], is_train: bool) -> Any:
        return vectors[: len(docs)], gradients.append

    return Model("given", forward, dims={"nO": WIDTH})


def docs() -> list[Doc]:
    return [make_pair(NLP, *pair) for pair in PAIRS]


def test_the_gradient_is_that_of_the_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(len(doc), WIDTH)).astype("f") for doc in docs()]
    gradients: list[Any] = []
    model = build_entailment(given_vectors(vectors, gradients), lstm_width=3)
    truth = np.eye(3, dtype="f")[[0, 1, 2, 0]]
    model.initialize(X=docs(), Y=truth)
    model.shims[0].network.double()  # finite differences need more digits than float32 has
    vectors[:] = [array.astype("d") for array in vectors]

    def loss() -> float:
        scores = model.predict(docs())
        return -float(np.log(scores[[0, 1, 3], [0, 1, 0]].astype("d")).sum())

    probabilities, backprop = model.begin_update(docs())
    assert not probabilities[2].any()  # no words in its premise
    np.testing.assert_allclose(probabilities[[0, 1, 3]].sum(1), 1, rtol=1e-6)
    backprop((probabilities - truth).astype("d"))
    assert not gradients[0][2].any()
    for doc, token, column in [(0, 0, 1), (0, 3, 0), (0, 5, 3), (1, 0, 2), (1, 4, 1), (3, 1, 0)]:
        before = vectors[doc][token, column]
        sides = []
        for step in (-1e-3, 1e-3):
            vectors[doc][token, column] = before + step
            sides.append(loss())
        vectors[doc][token, column] = before
        assert gradients[0][doc][token, column] == pytest.approx((sides[1] - sides[0]) / 2e-3, abs=2e-4)


def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    model = build_entailment(given_vectors([rng.normal(size=(len(doc), WIDTH)).astype("f") for doc in docs()], []))
    model.initialize(X=docs(), Y=np.eye(3, dtype="f"))
    together = model.predict(docs())
    monkeypatch.setattr(module, "WORDS_AT_ONCE", 5)
    np.testing.assert_allclose(model.predict(docs()), together, atol=1e-6)


def test_a_text_that_is_too_long_is_refused() -> None:
    model = build_entailment(given_vectors([np.ones((9, WIDTH), "f")], []), longest=5)
    model.initialize(X=docs(), Y=np.eye(3, dtype="f"))
    with pytest.raises(AnnotationError, match=r"has 6 tokens. Expected 5 at most: divide it, or raise model\.longest"):
        model.predict([make_pair(NLP, "a b c d e f", "a")])


@pytest.mark.parametrize("sizes", [{"lstm_width": 0}, {"lstm_width": 4.0}, {"longest": 0}, {"nO": 0}])
def test_wrong_sizes_are_refused(sizes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"{next(iter(sizes))} is"):
        build_entailment(given_vectors([], []), **sizes)
