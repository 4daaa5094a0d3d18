"""Exact match and F1, against the rules of SQuAD's evaluate-v1.1.py."""

import random
import re
import string
from collections import Counter

import pytest
import spacy
from spacy.tokens import SpanGroup
from spacy.training import Example

from spacy_elmo.tasks.answers.questions import make_question
from spacy_elmo.tasks.answers.scorer import f1, normalise, score_answers

NLP = spacy.blank("en")


# The functions of evaluate-v1.1.py, in its own order of steps
def normalize_answer(s: str) -> str:
    def remove_articles(text: str) -> str:
        return re.sub(r"\b(a|an|the)\b", " ", text)

    def white_space_fix(text: str) -> str:
        return " ".join(text.split())

    def remove_punc(text: str) -> str:
        exclude = set(string.punctuation)
        return "".join(ch for ch in text if ch not in exclude)

    return white_space_fix(remove_articles(remove_punc(s.lower())))


def f1_score(prediction: str, ground_truth: str) -> float:
    prediction_tokens = normalize_answer(prediction).split()
    ground_truth_tokens = normalize_answer(ground_truth).split()
    common = Counter(prediction_tokens) & Counter(ground_truth_tokens)
    num_same = sum(common.values())
    if num_same == 0:
        return 0
    precision = 1.0 * num_same / len(prediction_tokens)
    recall = 1.0 * num_same / len(ground_truth_tokens)
    return (2 * precision * recall) / (precision + recall)


WORDS = [
    "The",
    "the",
    "a",
    "An",
    "dog",
    "dogs'",
    "Dog",
    "U.S.",
    "$5",
    "theatre",
    "-",
    "\u2013",
    "  ",
    "A-B",
    "x\u00a0y",
]


def test_as_the_official_rules() -> None:
    draw = random.Random(0)
    for _ in range(2000):
        answer, right = (" ".join(draw.choices(WORDS, k=draw.randint(0, 5))) for _ in range(2))
        assert normalise(answer) == normalize_answer(answer)
        assert f1(answer, right) == pytest.approx(f1_score(answer, right), abs=1e-12)


def example(answer: str, right: list[str]) -> Example:
    text = f"{answer} . {' . '.join(right)} ."
    places = [text.index(one, len(answer)) for one in right]
    predicted = make_question(NLP, "Who?", text)
    predicted.spans["answer"] = [predicted.char_span(5, 5 + len(answer))] if answer else []
    return Example(predicted, make_question(NLP, "Who?", text, list(zip(places, right))))


def test_the_best_of_several_right_answers_counts() -> None:
    examples = [
        example("the big dog", ["a cat", "Big dog!"]),  # exact
        example("a dog", ["cat", "two dogs", "dog house", "a very big dog"]),  # 2 / 3 with the third
        example("cow", ["dog"]),
        example("", ["dog"]),
    ]
    assert score_answers(examples) == {"answers_em": 1 / 4, "answers_f1": pytest.approx((1 + 2 / 3) / 4)}


def test_only_the_first_predicted_answer_counts() -> None:
    one = example("dog", ["dog"])
    doc = one.predicted
    doc.spans["answer"] = SpanGroup(doc, spans=[doc[4:5], *doc.spans["answer"]])
    assert score_answers([one])["answers_em"] == 0


def test_texts_count_as_they_were_given() -> None:
    doc = make_question(NLP, "When?", "In the 1990s.")
    doc.spans["answer"] = [doc[5:6]]
    assert doc.spans["answer"][0].text == "1990s"
    right = make_question(NLP, "When?", "In the 1990s.", [(7, "1990")])
    assert score_answers([Example(doc, right)])["answers_em"] == 0
    right.spans["answer"].attrs.clear()
    assert score_answers([Example(doc, right)])["answers_em"] == 1


def test_docs_without_right_answers_do_not_count() -> None:
    doc = make_question(NLP, "When?", "Now.")
    assert score_answers([Example(doc, doc.copy())]) == {"answers_em": None, "answers_f1": None}
