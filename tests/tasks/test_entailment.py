"""Entailment: the component learns pairs and listens as spaCy's own do; its scores against spaCy's."""

from typing import Any

import numpy as np
import pytest
import spacy
from entailment_cases import LABELS, PAIRS, examples
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import fix_random_seed
from tasks import PLAIN

from spacy_elmo.errors import AnnotationError, UnknownLabelWarning
from spacy_elmo.tasks.entailment import make_pair, make_pairs
from spacy_elmo.tasks.entailment.scorer import build_entailment_scorer

TEXTS = [pair[:2] for pair in PAIRS]


def pipeline(**model: Any) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("entailment", config={"model": {"lstm_width": 8, "tok2vec": PLAIN} | model})
    return nlp


@pytest.fixture(scope="module")
def trained() -> Language:
    fix_random_seed(0)
    nlp = pipeline()
    optimizer = nlp.initialize(lambda: examples(nlp))
    optimizer.learn_rate = 0.01
    for _ in range(30):
        nlp.update(examples(nlp), sgd=optimizer)
    return nlp


def cats(nlp: Language) -> list[dict[str, float]]:
    return [doc.cats for doc in nlp.pipe(make_pairs(nlp, TEXTS))]


def test_it_learns(trained: Language) -> None:
    assert sorted(trained.get_pipe("entailment").labels) == sorted(LABELS)  # type: ignore[attr-defined]
    assert [max(one, key=lambda label: one[label]) for one in cats(trained)] == [truth for *_, truth in PAIRS]
    scores = trained.evaluate(examples(trained))
    assert scores["cats_acc"] == scores["cats_macro_f"] == 1.0
    assert sum(cats(trained)[0].values()) == pytest.approx(1)


def test_the_models_number_of_classes(trained: Language) -> None:
    nlp = pipeline(nO=3)
    nlp.initialize(lambda: examples(nlp))
    assert nlp.get_pipe("entailment").labels == trained.get_pipe("entailment").labels  # type: ignore[attr-defined]
    nlp.initialize(lambda: examples(nlp, 2))  # labels that it had stay


def test_docs_without_an_answer(trained: Language) -> None:
    docs = [Doc(trained.vocab), *make_pairs(trained, [("", ""), ("", "a"), ("a", " "), ("a", "b")])]
    assert [len(doc.cats) for doc in trained.pipe(docs)] == [0, 0, 0, 0, 3]
    assert not trained("").cats


def test_a_class_that_it_does_not_have() -> None:
    nlp = pipeline()
    nlp.initialize(lambda: examples(nlp, 2))
    pipe: Any = nlp.get_pipe("entailment")
    scores = np.full((len(PAIRS), len(LABELS)), 1 / 3, dtype="f")
    gold = examples(nlp)
    for one in gold:
        one.reference.cats = {
            label if label != "neutral" else "other": value for label, value in one.reference.cats.items()
        }
    with pytest.warns(UnknownLabelWarning, match=r"'entailment' does not have .*: other\."):
        _, gradient = pipe.get_loss(gold, scores)
    assert [bool(row.any()) for row in gradient] == [truth != "neutral" for *_, truth in PAIRS]


def test_examples_without_a_class_or_words_teach_nothing() -> None:
    nlp = pipeline()
    nlp.initialize(lambda: examples(nlp))
    no_words, no_class = make_pair(nlp, "", "a"), make_pair(nlp, "a", "b")
    no_words.cats = {"neutral": 1.0}
    pipe = nlp.get_pipe("entailment")
    for doc in (no_words, no_class):
        scores, _ = pipe.model.begin_update([doc])
        loss, gradient = pipe.get_loss([Example(doc.copy(), doc)], scores)
        assert loss == 0.0
        assert not gradient.any()
        nlp.update([Example(doc.copy(), doc)], sgd=nlp.create_optimizer())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"neutral": 1.0, "entailment": 1.0}, r"has the cats \{'entailment': 1.0, 'neutral': 1.0\}, from which"),
        ({"neutral": 0.7, "entailment": 0.3}, r"'entailment' can't learn. Expected 1.0 for its class, and 0.0"),
        ({"neutral": 1.0}, "can't be initialised: there is only one class, neutral. Expected two or more"),
    ],
)
def test_wrong_classes_are_refused(given: dict[str, float], message: str) -> None:
    nlp = pipeline()
    wrong = examples(nlp, 1)
    wrong[0].reference.cats = given
    with pytest.raises(AnnotationError, match=message):
        nlp.initialize(lambda: wrong)


def test_labels_that_were_added_or_given() -> None:
    nlp = pipeline()
    pipe: Any = nlp.get_pipe("entailment")
    for label in LABELS:
        pipe.add_label(label)
    nlp.initialize()  # spaCy's text categorizer can be initialised so, too
    (doc,) = nlp.pipe(make_pairs(nlp, TEXTS[:1]))
    assert tuple(doc.cats) == LABELS
    pipe = pipeline().get_pipe("entailment")
    pipe.initialize(lambda: examples(nlp), nlp=nlp, labels=["neutral", "entailment", "contradiction"])
    assert pipe.labels == pipe.label_data == ("neutral", "entailment", "contradiction")


# scores

CLASSES = ("c", "e", "n")
NLP = spacy.blank("xx")


def one_example(truth: str | None, answer: str | None) -> Example:
    predicted, reference = Doc(NLP.vocab, words=["a"]), Doc(NLP.vocab, words=["a"])
    if answer is not None:
        predicted.cats = {label: 0.6 if label == answer else 0.2 for label in CLASSES} | {"of a textcat": 0.9}
    if truth is not None:
        reference.cats = {label: float(label == truth) for label in CLASSES}
    return Example(predicted, reference)


def test_figures_by_hand() -> None:
    answers = ["cc", "cc", "ce", "ee", "en", "e-", "-n", "nc"]
    examples = [one_example(*(None if name == "-" else name for name in pair)) for pair in answers]
    scores = build_entailment_scorer()(examples, labels=CLASSES)
    assert scores["cats_acc"] == 3 / 7  # the pair without a class does not count, that without an answer is wrong
    # c: 2 right, 1 wrong, 1 missed; e: 1 right, 1 wrong, 2 missed; n: none right
    assert scores["cats_f_per_type"] == {
        "c": {"p": pytest.approx(2 / 3), "r": pytest.approx(2 / 3), "f": pytest.approx(2 / 3)},
        "e": {"p": pytest.approx(1 / 2), "r": pytest.approx(1 / 3), "f": pytest.approx(2 / 5)},
        "n": {"p": 0.0, "r": 0.0, "f": 0.0},
    }
    assert scores["cats_macro_f"] == pytest.approx((2 / 3 + 2 / 5) / 3)
    examples[0].predicted.cats["c"] = float("nan")  # no answer, though the maximum of the scores would be this one
    assert build_entailment_scorer()(examples, labels=CLASSES)["cats_acc"] == 2 / 7


def test_pairs_of_unknown_classes_are_told() -> None:
    examples = [one_example(*pair) for pair in ("cc", "ce", "nc", "oc")]
    examples[-1].reference.cats["o"] = 1.0
    examples[-2].reference.cats = {"other": 1.0}
    with pytest.warns(
        UnknownLabelWarning, match=r"2 of 4 examples are not scored, .* classes: o, other\. Expected c, e, n"
    ):
        scores = build_entailment_scorer()(examples, labels=CLASSES)
    assert scores["cats_acc"] == 1 / 2
    assert scores["cats_macro_f"] == pytest.approx(2 / 3)  # that of c: no pair is an e or n


def test_nothing_to_score() -> None:
    assert set(build_entailment_scorer()([one_example(None, "c")], labels=CLASSES).values()) == {None}
