"""ESIM's formulas in numpy, one pair at a time; the layer's gradient and batches, and what it refuses."""

from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import Model

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.entailment import make_pair
from spacy_elmo.tasks.entailment import model as module
from spacy_elmo.tasks.entailment.model import Esim, build_entailment

NLP = spacy.blank("xx")
PAIRS = [("a b c d", "b"), ("a", "c d e"), ("", "a"), ("d d", "e f")]
WIDTH, HIDDEN, LABELS = 5, 6, 3
Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    exp = np.exp(x - x.max(1, keepdims=True))
    return exp / exp.sum(1, keepdims=True)


def bilstm(weights: dict[str, Array], name: str, words: Array) -> Array:
    directions = []
    for way, rows in (("forwards", words), ("backwards", words[::-1])):
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        w, u, b, c = (weights[f"{name}.{way}.0.{part}_l0"] for part in parts)
        state = cell = np.zeros(HIDDEN // 2)
        outputs = []
        for row in rows:
            i, f, g, o = np.split(w @ row + u @ state + b + c, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            state = sigmoid(o) * np.tanh(cell)
            outputs.append(state)
        directions.append(np.array(outputs[:: -1 if way == "backwards" else 1]))
    return np.concatenate(directions, axis=1)


def linear(weights: dict[str, Array], name: str, x: Array) -> Array:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def compare(weights: dict[str, Array], words: Array, aligned: Array) -> Array:
    features = np.concatenate([words, aligned, words - aligned, words * aligned], axis=1)
    return np.maximum(linear(weights, "comparison", features), 0)


def scores_of(weights: dict[str, Array], premise: Array, hypothesis: Array) -> Array:
    a, b = bilstm(weights, "encoder", premise), bilstm(weights, "encoder", hypothesis)
    similarity = a @ b.T
    composed_a = bilstm(weights, "composition", compare(weights, a, softmax(similarity) @ b))
    composed_b = bilstm(weights, "composition", compare(weights, b, softmax(similarity.T) @ a))
    pooled = [composed_a.mean(0), composed_a.max(0), composed_b.mean(0), composed_b.max(0)]
    return linear(weights, "output", np.tanh(linear(weights, "hidden", np.concatenate(pooled))))


def test_it_is_esim() -> None:
    torch.manual_seed(0)
    network = Esim(WIDTH, HIDDEN // 2, LABELS).double()
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    rng = np.random.default_rng(0)
    premises = [3 * rng.normal(size=(length, WIDTH)) for length in (4, 1, 7)]
    hypotheses = [3 * rng.normal(size=(length, WIDTH)) for length in (2, 5, 1)]
    rows = [*premises, *hypotheses]
    with torch.no_grad():
        got = network(torch.from_numpy(np.concatenate(rows)), [len(row) for row in rows], 0.0)
    expected = [scores_of(weights, premise, hypothesis) for premise, hypothesis in zip(premises, hypotheses)]
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-12)


def test_dropout_is_given_with_each_call() -> None:
    torch.manual_seed(0)
    network, words = Esim(6, 4, 3), torch.randn(5, 6)
    assert not torch.equal(network(words, [3, 2], 0.5), network(words, [3, 2], 0.5))
    assert torch.equal(network(words, [3, 2], 0.0), network.eval()(words, [3, 2], 0.0))


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
