"""The architecture Answers: scores of contexts, gradients that reach tok2vec, windows of long contexts."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from answers_cases import CONTEXT, PLAIN
from spacy import registry
from spacy.tokens import Doc
from thinc.api import Model, fix_random_seed

from spacy_elmo.tasks.answers import make_question
from spacy_elmo.tasks.answers import model as module
from spacy_elmo.tasks.answers.model import AnswersModel, Similarity, build_answers, shared_words, windows_of
from spacy_elmo.tasks.shared import texts_of

NLP = spacy.blank("xx")


def docs() -> list[Doc]:
    texts = [
        ("Where does Anna live?", CONTEXT),
        ("", CONTEXT),
        ("Who?", "Rex."),
        ("What is it?", f"{CONTEXT} {CONTEXT}"),
    ]
    return [*(make_question(NLP, *pair) for pair in texts), NLP.make_doc("")]


def build(tok2vec: Any = None, **settings: Any) -> AnswersModel:
    fix_random_seed(0)
    tok2vec = tok2vec or registry.resolve({"model": PLAIN})["model"]
    model = build_answers(tok2vec, **{"lstm_width": 6, **settings})
    model.initialize(X=docs())
    return model


class Vectors:
    """A tok2vec that returns given arrays, and keeps their gradients."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.arrays = [rng.normal(size=(len(doc), 5)).astype("f") for doc in docs()]
        self.gradients: list[np.ndarray] = []
        self.layer: Model[Any, Any] = Model("vectors", self._forward)

    def _forward(self, model: Any, given: list[Doc], is_train: bool) -> Any:
        return self.arrays[: len(given)], self.gradients.extend


@pytest.mark.parametrize(("self_attention", "window"), [(True, 400), (False, 400), (True, 5)])
def test_scores_do_not_depend_on_the_batch(self_attention: bool, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(self_attention=self_attention, longest_window=window, window_overlap=2)
    together = model.predict(docs())
    assert [len(scores) for scores in together] == [12, 0, 2, 24, 0]
    alone, trained = [model.predict([doc])[0] for doc in docs()], model.begin_update(docs())[0]
    monkeypatch.setattr(module, "_CELLS", 1)
    for other in (alone, trained, model.predict(docs())):
        for one, scores in zip(other, together):
            np.testing.assert_allclose(one, scores, atol=1e-5)


@pytest.mark.parametrize("window", [400, 7])
def test_gradients_of_the_vectors(window: int) -> None:
    """Against differences of the scores' weighted sum."""
    vectors = Vectors()
    model = build(vectors.layer, longest_window=window, window_overlap=3)
    scores, backprop = model.begin_update(docs())
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=array.shape).astype("f") for array in scores]
    backprop(weights)
    assert [gradient.shape for gradient in vectors.gradients] == [array.shape for array in vectors.arrays]
    assert not vectors.gradients[1].any()  # no question, so it is not read
    for doc, token, column in ((0, 2, 1), (0, 9, 0), (2, 3, 4), (3, 14, 2)):
        sums = []
        for step in (1e-2, -1e-2):
            vectors.arrays[doc][token, column] += step
            sums.append(sum(float((w * s).sum()) for w, s in zip(weights, model.predict(docs()))))
            vectors.arrays[doc][token, column] -= step
        assert vectors.gradients[doc][token, column] == pytest.approx((sums[0] - sums[1]) / 2e-2, abs=2e-3, rel=2e-2)


def test_long_contexts_are_read_in_windows() -> None:
    doc = make_question(NLP, "Who?", " ".join(f"w{i}" for i in range(50)))
    model = build(longest_window=20, window_overlap=10)
    scores = model.predict([doc])[0]
    assert scores.shape == (50, 2)
    # the first window is read as if the context ended there; half of what it shares with the next one is the next's
    short = doc[: 3 + 20].as_doc()
    short.spans["question"], short.spans["context"] = [short[:2]], [short[3:]]
    np.testing.assert_allclose(scores[:15], model.predict([short])[0][:15], atol=1e-5)


def parts(question: str, context: str) -> Any:
    return texts_of(make_question(NLP, question, context), ("question", "context"))


@pytest.mark.parametrize("tokens", [1, 9, 10, 11, 17, 18, 40])
@pytest.mark.parametrize("overlap", [0, 1, 3, 9])
def test_windows_give_each_token_once(tokens: int, overlap: int) -> None:
    rows = windows_of([None, parts("Who is it", " ".join(["word"] * tokens))], 10, overlap)
    assert {row.doc for row in rows} == {1}
    assert all(row.question == slice(0, 3) and row.sizes[0] <= 10 for row in rows)
    used = [i for row in rows for i in range(row.window.start, row.window.stop)[row.used]]
    assert used == list(range(4, 4 + tokens))
    assert [i for row in rows for i in range(row.place.start, row.place.stop)] == list(range(tokens))
    for row, following in pairwise(rows):
        assert row.window.stop - following.window.start == overlap
        assert row.sizes[0] - row.used.stop == overlap // 2


def test_shared_words() -> None:
    found = parts("Where is Bonn ?", "bonn is big . Is it ?")
    (row,) = windows_of([found], 100, 0)
    assert shared_words(found[0].doc, row).tolist() == [0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0]


def test_similarity_is_one_weight_vector_over_both_and_their_product() -> None:
    torch.manual_seed(0)
    similarity, first, second = Similarity(4), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    weight = torch.cat([similarity.of_first.weight[0], similarity.of_second.weight[0], similarity.of_both])
    scores = similarity(first, second)
    assert scores.shape == (2, 3, 5)
    for row, i, j in ((0, 0, 0), (1, 2, 4), (1, 0, 3)):
        a, b = first[row, i], second[row, j]
        torch.testing.assert_close(scores[row, i, j], weight @ torch.cat([a, b, a * b]))


def test_every_weight_learns_and_dropout_drops() -> None:
    model = build()
    scores, backprop = model.begin_update(docs()[:1])
    gradient = np.zeros_like(scores[0])
    gradient[2] = 1
    backprop([gradient - 1 / len(gradient)])  # what is added to all tokens changes no softmax
    network: Any = model.shims[0]
    still = {name for name, value in network.network.named_parameters() if not value.grad.any()}
    assert still <= {"start.bias", "end.bias"}
    model.attrs["dropout_rate"] = 0.5
    assert not np.allclose(model.begin_update(docs()[:1])[0][0], scores[0])
    np.testing.assert_allclose(model.predict(docs()[:1])[0], scores[0], atol=1e-5)
