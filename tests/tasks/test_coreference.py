"""Coreference: clusters on docs, the component in a pipeline, what it learns from, and its loss."""

from typing import Any

import numpy as np
import pytest
import spacy
import torch
from coreference_cases import TEXTS, blank, bounds, examples, trained
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.coreference import PREFIX, annotate, clusters_of
from spacy_elmo.tasks.coreference.component import clusters_from, gold_mentions, loss_and_gradient, targets_of
from spacy_elmo.tasks.coreference.model import Scores
from spacy_elmo.tasks.coreference.scorer import build_coreference_scorer

VOCAB = spacy.blank("xx").vocab
TEXT, CLUSTERS = TEXTS[0]


@pytest.fixture(scope="module")
def learned() -> Language:
    return trained()


# clusters on docs


@pytest.fixture
def doc() -> Doc:
    blank()  # it sets the extension attributes
    return Doc(VOCAB, words=["Anna", "saw", "Bert", "and", "his", "dog", ".", "She", "waved"])


def test_groups_and_attributes(doc: Doc) -> None:
    clusters = [[(0, 1), (7, 8)], [(2, 3), (4, 5)], [(4, 6)]]
    annotate(doc, clusters)
    assert list(doc.spans) == ["coref_clusters_1", "coref_clusters_2", "coref_clusters_3"]
    assert bounds(doc._.coref_clusters) == clusters
    assert doc[7:8]._.coref_head.text == "Anna"
    assert doc[4:5]._.coref_head.text == "Bert"
    assert doc[4:6]._.coref_head.text == "his dog"
    assert doc[1:2]._.coref_head is None


def test_clusters_in_the_order_of_their_numbers(doc: Doc) -> None:
    annotate(doc, [[(place, place + 1)] for place in range(8)])
    doc.spans["coref_clusters_10"] = [doc[0:2], doc[0:2]]  # a mention that is given twice is one
    doc.spans["coref_clusters_9"] = []
    assert bounds(clusters_of(doc)) == [[(place, place + 1)] for place in range(8)] + [[(0, 2)]]


def test_new_clusters_replace_old_ones(doc: Doc) -> None:
    doc.spans["others"] = [doc[0:3]]
    annotate(doc, [[(0, 1)], [(5, 6)]])
    annotate(doc, [[doc[0:1], (7, 8)], [[2, 3], doc[4:5]]])  # mentions may be spans
    assert bounds(clusters_of(doc)) == [[(0, 1), (7, 8)], [(2, 3), (4, 5)]]
    annotate(doc, clusters_of(doc)[1:])  # spans of the groups that are replaced
    assert bounds(clusters_of(doc)) == [[(2, 3), (4, 5)]]
    assert "others" in doc.spans


def test_another_prefix(doc: Doc) -> None:
    spacy.blank("xx").add_pipe("coreference", config={"prefix": "people"})
    annotate(doc, [[(0, 1)]], "people")
    annotate(doc, [[(2, 3), (4, 5)]])
    assert bounds(doc._.people) == [[(0, 1)]]
    assert bounds(doc._.coref_clusters) == [[(2, 3), (4, 5)]]
    assert (doc[0:1]._.people_head, doc[0:1]._.coref_head) == (doc[0:1], None)
    assert (doc[4:5]._.people_head, doc[4:5]._.coref_head) == (None, doc[2:3])


def test_groups_that_are_refused(doc: Doc) -> None:
    doc.spans["coref_clusters_1"], doc.spans["coref_clusters_2"] = [doc[0:1], doc[2:3]], [doc[2:3]]
    with pytest.raises(AnnotationError, match="'Bert' is in two clusters, coref_clusters_1 and coref_clusters_2"):
        clusters_of(doc)
    doc.spans["coref_clusters_anna"] = [doc[0:1]]
    with pytest.raises(AnnotationError, match="coref_clusters_anna has no number"):
        clusters_of(doc)


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        ([[(0, 99)]], r"mention \(0, 99\). Expected a span of this doc, or a pair .*, 0 to 9"),
        ([[(2, 2)]], r"mention \(2, 2\). Expected a span"),
        ([[(-1, 2)]], r"mention \(-1, 2\). Expected a span"),
        ([[(0, 1)], [(2, 3), (0, 1)]], "'Anna' is in two clusters, coref_clusters_1 and coref_clusters_2"),
        ([[(0, 1, "PER")]], r"mention \(0, 1, 'PER'\). Expected a span"),
        ([(0, 1), (6, 7)], "cluster 1 has the mention 0. Expected a span"),
        ([[(0, 1)], [(0.0, 2)]], r"cluster 2 has the mention \(0.0, 2\). Expected a span"),
        ([["ab"]], "cluster 1 has the mention 'ab'. Expected a span"),
        ([[Doc(VOCAB, words=["Anna"])[:]]], "mention the Span 'Anna'. Expected a span of this doc"),
    ],
)
def test_wrong_clusters_change_nothing(doc: Doc, clusters: Any, message: str) -> None:
    annotate(doc, [[(4, 5)]])
    with pytest.raises(AnnotationError, match=message):
        annotate(doc, clusters)
    assert bounds(clusters_of(doc)) == [[(4, 5)]]


# the component


def found(nlp: Language, text: str = TEXT) -> list[list[tuple[int, int]]]:
    return bounds(clusters_of(nlp(Doc(nlp.vocab, words=text.split()))))


def test_it_learns_docs_by_heart(learned: Language) -> None:
    for text, clusters in TEXTS:
        assert found(learned, text) == clusters
    scores = learned.evaluate(examples(learned))
    assert scores["coref_f"] == pytest.approx(1.0)
    assert scores["coref_lea_f"] == pytest.approx(1.0)


@pytest.mark.parametrize("singletons", [False, True])
def test_the_scorer_has_its_own_setting(learned: Language, singletons: bool) -> None:
    """The component finds singletons and passes its settings to the scorer."""
    pipe = learned.get_pipe("coreference")
    whole, pipe.scorer = pipe.scorer, build_coreference_scorer(singletons=singletons)
    try:
        gold = Doc(learned.vocab, words=TEXT.split())
        annotate(gold, [*CLUSTERS[:2], [(3, 4)]])  # a singleton that is not found
        scores = learned.evaluate([Example(Doc(learned.vocab, words=TEXT.split()), gold)])
    finally:
        pipe.scorer = whole
    assert scores["coref_mentions_r"] == (4 / 5 if singletons else 1.0)


def test_the_scorer_reads_the_prefix_of_the_component() -> None:
    doc = Doc(blank().vocab, words=TEXT.split())
    annotate(doc, CLUSTERS[:2], prefix="chains")
    scorer = build_coreference_scorer()
    assert scorer([Example(doc, doc)], prefix="chains", singletons=True)["coref_f"] == pytest.approx(1.0)
    pipe = spacy.blank("xx").add_pipe("coreference", config={"prefix": "chains"})
    pipe.cfg = {"prefix": "coref_clusters"}  # type: ignore[attr-defined]  # as version 0.1.0 saved it
    assert pipe.score([Example(doc, doc)])["coref_f"] == pytest.approx(1.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("words", [[], ["Anna"], ["\n"], ["\n", " "], ["."]])
def test_docs_of_few_tokens(learned: Language, words: list[str]) -> None:
    doc = learned(Doc(learned.vocab, words=words))
    assert all(not span.text.isspace() for cluster in clusters_of(doc) for span in cluster)
    pipe = learned.get_pipe("coreference")
    assert len(pipe.predict([doc, Doc(learned.vocab, words=TEXT.split())])) == 2


def test_an_empty_doc_in_training(learned: Language) -> None:
    nlp = blank().from_bytes(learned.to_bytes())
    given = examples(nlp, [("", []), TEXTS[0], (".", [])])
    losses = nlp.update(given, sgd=nlp.resume_training())
    assert losses["coreference"] > 0
    nlp.update(given[:1])


def test_the_gradient_of_the_token_vectors() -> None:
    """Against finite differences, through the embedding that the component learns."""
    fix_random_seed(0)
    nlp = blank()
    given = examples(nlp)[:1]
    nlp.initialize(lambda: given)
    pipe = nlp.get_pipe("coreference")
    vectors = pipe.model.get_ref("tok2vec").predict([given[0].predicted])[0].astype("float32")
    shift = np.random.default_rng(0).normal(size=vectors.shape).astype("float32")
    received: list[Any] = []

    def loss_at(array: Any) -> float:
        layer = pipe.model.get_ref("tok2vec")
        forward = layer._func
        layer._func = lambda model, docs, is_train: ([array], lambda d_arrays: received.append(d_arrays[0]) or [])
        try:
            scores, backprop = pipe.model.begin_update([given[0].predicted])
            loss, gradient = pipe.get_loss(given, scores)
            backprop(gradient)
        finally:
            layer._func = forward
        return float(loss)

    step = 1e-3
    slope = (loss_at(vectors + step * shift) - loss_at(vectors - step * shift)) / (2 * step)
    loss_at(vectors)
    assert slope == pytest.approx(float((received[-1] * shift).sum()), rel=0.02)


@pytest.mark.parametrize("singletons", [True, False])
def test_a_mention_joins_the_cluster_of_an_antecedent_above_zero(singletons: bool) -> None:
    """The second score is 0, so its mention begins a cluster; the fifth joins the fourth's, which is the first's."""
    spans = np.array([[0, 1], [2, 3], [4, 6], [7, 8], [9, 10]])
    antecedents, pair_scores = np.array([[0], [0], [1], [0], [3]]), np.array([[-1.0], [0.0], [-0.5], [1e-6], [2.0]])
    scores = Scores(spans, np.ones(5), np.arange(5), antecedents, pair_scores)
    first, alone = [(0, 1), (7, 8), (9, 10)], [[(2, 3)], [(4, 6)]]
    assert clusters_from(scores, singletons=singletons) == [first, *(alone if singletons else [])]


# what it learns from, and the loss against torch's

INF = float("inf")
SCORES = Scores(
    np.array([[0, 1], [0, 2], [2, 3], [4, 5], [6, 7]]),
    np.array([0.5, -1.0, 2.0, -3.0, 90.0], dtype=np.float32),
    np.array([0, 2, 3, 4]),
    np.array([[-1, -1], [0, -1], [1, 0], [2, 1]]),
    np.array([[-INF, -INF], [0.3, -INF], [-0.2, 1.5], [4.0, -90.0]], dtype=np.float32),
)


def test_targets() -> None:
    gold = {(0, 1): 0, (2, 3): 1, (6, 7): 1, (1, 3): 2}
    is_mention, corefer = targets_of(SCORES, gold)
    assert is_mention.tolist() == [1, 0, 1, 0, 1]
    assert corefer.tolist() == [[0, 0], [0, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize("corefer", [[[0, 0], [0, 0], [0, 0], [0, 1]], [[0, 0], [1, 0], [1, 1], [0, 0]]])
def test_the_loss_and_its_gradient(corefer: list[list[int]]) -> None:
    is_mention = np.array([1.0, 0, 1, 0, 0])
    loss, gradient = loss_and_gradient(SCORES, is_mention, np.array(corefer, dtype=float))
    mentions, pairs = (
        torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for array in (SCORES.mention_scores, SCORES.pair_scores)
    )
    everything = torch.cat([torch.zeros(4, 1), pairs], dim=1)
    right = torch.tensor([[not any(row), *row] for row in corefer], dtype=torch.bool)
    marginal = everything.masked_fill(~right, -INF).logsumexp(1) - everything.logsumexp(1)
    entropy = torch.nn.functional.binary_cross_entropy_with_logits(mentions, torch.tensor(is_mention), reduction="sum")
    expected = (entropy - marginal.sum()) / 4
    expected.backward()
    assert loss == pytest.approx(expected.item())
    np.testing.assert_allclose(gradient.mention_scores, mentions.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient.pair_scores, np.nan_to_num(pairs.grad.numpy()), rtol=1e-6, atol=1e-12)


def test_mentions_with_other_tokens_and_blanks() -> None:
    """spaCy pairs docs whose texts differ in whitespace: words without blanks known, for example, and a raw text."""
    nlp = spacy.blank("xx")
    reference = Doc(nlp.vocab, words=["Anna", "met", "an", "old", "man", ".", "She", "liked", "him", "."])
    annotate(reference, [[(0, 1), (6, 7)], [(2, 5), (8, 9)]])
    mentions = ["Anna", "an old man", "She", "him"]
    for text in ("Anna met an old man. She liked him.", "\n Anna  met an old man .\n\nShe liked\thim.", reference.text):
        predicted = nlp.make_doc(text)
        gold = gold_mentions(Example(predicted, reference), PREFIX)
        assert [predicted[start:end].text for start, end in sorted(gold)] == mentions
        assert [gold[place] for place in sorted(gold)] == [0, 1, 0, 1]
    joined = Doc(nlp.vocab, words=["Anna met", "an", "old", "man", ".", "She", "liked", "him", "."])
    # what does not begin and end with tokens there can't be learned, and is left out
    assert gold_mentions(Example(joined, reference), PREFIX) == {(5, 6): 0, (1, 4): 1, (7, 8): 1}
