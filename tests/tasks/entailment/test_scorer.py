"""Accuracy and F1 against figures worked out by hand and, if each doc has an answer, against spaCy's own scorer."""

import numpy as np
import pytest
import spacy
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.tasks.entailment.scorer import build_entailment_scorer

VOCAB = spacy.blank("en").vocab
LABELS = ("c", "e", "n")
score = build_entailment_scorer()


def example(truth: str | None, answer: str | None) -> Example:
    predicted, reference = Doc(VOCAB, words=["a"]), Doc(VOCAB, words=["a"])
    if answer is not None:
        predicted.cats = {label: 0.6 if label == answer else 0.2 for label in LABELS} | {"of a textcat": 0.9}
    if truth is not None:
        reference.cats = {label: float(label == truth) for label in LABELS}
    return Example(predicted, reference)


def test_figures_by_hand() -> None:
    answers = ["cc", "cc", "ce", "ee", "en", "e-", "-n", "nc"]
    examples = [example(*(None if name == "-" else name for name in pair)) for pair in answers]
    scores = score(examples, labels=LABELS)
    assert scores["cats_acc"] == 3 / 7  # the pair without a class does not count, that without an answer is wrong
    # c: 2 right, 1 wrong, 1 missed; e: 1 right, 1 wrong, 2 missed; n: none right
    assert scores["cats_f_per_type"] == {
        "c": {"p": pytest.approx(2 / 3), "r": pytest.approx(2 / 3), "f": pytest.approx(2 / 3)},
        "e": {"p": pytest.approx(1 / 2), "r": pytest.approx(1 / 3), "f": pytest.approx(2 / 5)},
        "n": {"p": 0.0, "r": 0.0, "f": 0.0},
    }
    assert scores["cats_macro_f"] == pytest.approx((2 / 3 + 2 / 5) / 3)


def test_the_same_as_spacys_if_each_doc_has_an_answer() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.choice(LABELS, size=(200, 2))
    examples = [example(truth, answer) for truth, answer in pairs.tolist()]
    scores = score(examples, labels=LABELS)
    expected = Scorer.score_cats(examples, "cats", labels=LABELS, multi_label=False)
    assert scores["cats_acc"] == pytest.approx((pairs[:, 0] == pairs[:, 1]).mean())
    assert scores["cats_acc"] == pytest.approx(expected["cats_micro_f"])
    assert scores["cats_macro_f"] == pytest.approx(expected["cats_macro_f"])
    assert scores["cats_f_per_type"] == expected["cats_f_per_type"]


def test_nothing_to_score() -> None:
    assert set(score([example(None, "c")], labels=LABELS).values()) == {None}
