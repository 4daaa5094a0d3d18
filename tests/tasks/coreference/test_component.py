"""The component in a pipeline: learning, annotations, saving, processes, settings, and docs that are out of the way."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from coreference_cases import SMALL, TEXTS, blank, bounds, examples
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed

from spacy_elmo.errors import AnnotationError, SettingsError
from spacy_elmo.tasks.coreference.annotations import annotate, clusters_of
from spacy_elmo.tasks.coreference.scorer import build_coreference_scorer

TEXT, CLUSTERS = TEXTS[0]


def found(nlp: Language, text: str = TEXT) -> list[list[tuple[int, int]]]:
    return bounds(clusters_of(nlp(Doc(nlp.vocab, words=text.split()))))


def test_it_learns_docs_by_heart(trained: Language) -> None:
    for text, clusters in TEXTS:
        assert found(trained, text) == clusters
    scores = trained.evaluate(examples(trained))
    assert scores["coref_f"] == pytest.approx(1.0)
    assert scores["coref_lea_f"] == pytest.approx(1.0)


def test_attributes(trained: Language) -> None:
    doc = trained(Doc(trained.vocab, words=TEXT.split()))
    assert [span.text for span in doc._.coref_clusters[0]] == ["Anna", "She"]
    assert doc[8:9]._.coref_head.text == "an old man"


def test_without_singletons(trained: Language) -> None:
    pipe = trained.get_pipe("coreference")
    pipe.cfg["singletons"] = False
    try:
        assert found(trained) == CLUSTERS[:2]
    finally:
        pipe.cfg["singletons"] = True


@pytest.mark.parametrize("singletons", [False, True])
def test_the_scorer_has_its_own_setting(trained: Language, singletons: bool) -> None:
    """The component finds singletons and passes its settings to the scorer."""
    pipe = trained.get_pipe("coreference")
    whole, pipe.scorer = pipe.scorer, build_coreference_scorer(singletons=singletons)
    try:
        gold = Doc(trained.vocab, words=TEXT.split())
        annotate(gold, [*CLUSTERS[:2], [(3, 4)]])  # a singleton that is not found
        scores = trained.evaluate([Example(Doc(trained.vocab, words=TEXT.split()), gold)])
    finally:
        pipe.scorer = whole
    assert scores["coref_mentions_r"] == (4 / 5 if singletons else 1.0)


def test_the_scorer_reads_the_prefix_of_the_component() -> None:
    doc = Doc(blank().vocab, words=TEXT.split())
    annotate(doc, CLUSTERS[:2], prefix="chains")
    scorer = build_coreference_scorer()
    assert scorer([Example(doc, doc)], prefix="chains", singletons=True)["coref_f"] == pytest.approx(1.0)


def test_bytes_disk_and_pickle(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path)
    others = [spacy.load(tmp_path), pickle.loads(pickle.dumps(trained)), blank().from_bytes(trained.to_bytes())]
    for other in others:
        assert found(other) == CLUSTERS
        own, theirs = (nlp.get_pipe("coreference").to_bytes(exclude=["vocab"]) for nlp in (trained, other))
        assert own == theirs
    assert not list(tmp_path.rglob("*.pkl"))


def test_settings_of_a_saved_pipeline_can_be_changed(trained: Language, tmp_path: Path) -> None:
    trained.to_disk(tmp_path)
    other = spacy.load(tmp_path, config={"components": {"coreference": {"prefix": "chains"}}})
    doc = other(Doc(other.vocab, words=TEXTS[0][0].split()))
    assert "chains_1" in doc.spans
    assert "coref_clusters_1" not in doc.spans
    gold = Doc(other.vocab, words=TEXTS[0][0].split())
    annotate(gold, TEXTS[0][1], prefix="chains")
    predicted = Doc(other.vocab, words=TEXTS[0][0].split())
    assert other.evaluate([Example(predicted, gold)])["coref_f"] == pytest.approx(1.0)  # the scorer reads them too


@pytest.mark.slow
def test_pipe_and_processes(trained: Language) -> None:
    texts = [text for text, _ in TEXTS] * 4
    for processes in (1, 2):
        docs = trained.pipe(
            (Doc(trained.vocab, words=text.split()) for text in texts), n_process=processes, batch_size=5
        )
        assert [bounds(clusters_of(doc)) for doc in docs] == [clusters for _, clusters in TEXTS] * 4


@pytest.mark.parametrize("words", [[], ["Anna"], ["\n"], ["\n", " "], ["."]])
def test_docs_of_few_tokens(trained: Language, words: list[str]) -> None:
    doc = trained(Doc(trained.vocab, words=words))
    assert all(not span.text.isspace() for cluster in clusters_of(doc) for span in cluster)
    pipe = trained.get_pipe("coreference")
    assert len(pipe.predict([doc, Doc(trained.vocab, words=TEXT.split())])) == 2


def test_an_empty_doc_in_training(trained: Language) -> None:
    nlp = blank().from_bytes(trained.to_bytes())
    given = examples(nlp, [("", []), TEXTS[0], (".", [])])
    losses = nlp.update(given, sgd=nlp.resume_training())
    assert losses["coreference"] > 0
    nlp.update(given[:1])


def test_training_is_repeated_with_the_same_seed() -> None:
    saved = []
    for _ in range(2):
        fix_random_seed(3)
        nlp = blank(train_tokens=6)
        given = examples(nlp)
        optimizer = nlp.initialize(lambda given=given: given)
        for _ in range(3):
            nlp.update(given, sgd=optimizer, drop=0.2)
        saved.append(nlp.get_pipe("coreference").to_bytes(exclude=["vocab"]))
    assert saved[0] == saved[1]


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


def test_a_listener_learns_too() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("tok2vec")
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
    nlp.add_pipe("coreference", config={"model": SMALL | {"tok2vec": listener}})
    given = examples(nlp)
    optimizer = nlp.initialize(lambda: given)
    before = nlp.get_pipe("tok2vec").model.to_bytes()
    for _ in range(2):
        nlp.update(given, sgd=optimizer)
    assert nlp.get_pipe("tok2vec").model.to_bytes() != before
    text = Doc(nlp.vocab, words=TEXT.split())
    clusters = bounds(clusters_of(nlp(text)))
    nlp.replace_listeners("tok2vec", "coreference", ["model.tok2vec"])
    assert bounds(clusters_of(nlp(Doc(nlp.vocab, words=TEXT.split())))) == clusters


def test_elmo_as_input() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo")
    source = {"@architectures": "spacy-elmo.Listener.v1", "width": 256, "upstream": "elmo"}
    tok2vec = {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "source": source,
        "mix": {"@layers": "spacy-elmo.ScalarMix.v1"},
    }
    nlp.add_pipe("coreference", config={"model": SMALL | {"tok2vec": tok2vec}})
    given = examples(nlp)
    optimizer = nlp.initialize(lambda: given)
    mix = next(node for node in nlp.get_pipe("coreference").model.walk() if node.has_param("gamma"))
    before = mix.get_param("gamma").copy()
    for _ in range(2):
        nlp.update(given, sgd=optimizer)
    assert (mix.get_param("gamma") != before).any()
    assert isinstance(found(nlp), list)


def test_examples_without_clusters() -> None:
    nlp = blank()
    with pytest.raises(AnnotationError, match=r"can't be initialised: none of its examples \(1\) has span groups"):
        nlp.initialize(lambda: examples(nlp, [("Anna slept .", [])]))


def test_wrong_clusters_are_refused_in_training(trained: Language) -> None:
    given = examples(trained, [("Anna slept .", [[(0, 1)]])])
    given[0].reference.spans["coref_clusters_2"] = [given[0].reference[0:1]]  # `annotate` would refuse it
    with pytest.raises(AnnotationError, match="in two clusters"):
        trained.update(given)


def test_before_it_is_initialised() -> None:
    with pytest.raises(ValueError, match="initialize"):
        blank()("Anna slept .")
    with pytest.raises(ValueError, match="initialize"):
        blank(tok2vec={"@architectures": "spacy.Tok2VecListener.v1", "width": 8, "upstream": "tok2vec"})("Anna slept .")


@pytest.mark.parametrize(
    ("model", "own", "message"),
    [
        ({"antecedents": 0}, {}, "antecedents is 0. Expected a whole number, 1 or more"),
        ({"mentions_per_token": 1.5}, {}, "mentions_per_token is 1.5"),
        ({"mentions_per_token": "0.2"}, {}, "mentions_per_token is '0.2'"),
        ({}, {"prefix": "a b"}, "prefix is 'a b'"),
        ({}, {"prefix": "get"}, "prefix is 'get', a name that spaCy or Python uses"),
        ({}, {"prefix": "class"}, "prefix is 'class', a name that spaCy or Python uses"),
    ],
)
def test_settings(model: dict[str, Any], own: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacy.blank("en").add_pipe("coreference", config={"model": SMALL | model, **own})


@pytest.mark.slow
def test_a_short_text_keeps_all_its_mentions() -> None:
    """A share of 0.2 of ten tokens would be two spans."""
    nlp = blank(mentions_per_token=0.2)
    fix_random_seed(0)
    optimizer = nlp.initialize(lambda: examples(nlp))
    for _ in range(120):
        nlp.update(examples(nlp), sgd=optimizer)
    assert found(nlp) == CLUSTERS
