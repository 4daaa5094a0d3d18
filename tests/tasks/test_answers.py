"""Answers: docs of questions, the component wherever spaCy uses components, its loss, and its scores."""

import random
import re
import string
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from answers_cases import CONTEXT, QUESTIONS, answering, gold
from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.answers import make_question, make_questions
from spacy_elmo.tasks.answers.component import best_spans
from spacy_elmo.tasks.answers.scorer import f1, normalise, score_answers

NLP = spacy.blank("xx")
ASKED = [(question, CONTEXT) for question in QUESTIONS]
RIGHT = list(QUESTIONS.values())


def test_answers_become_spans_of_whole_tokens() -> None:
    text = "It cost $5-6 (1990s) in Bonn, in Bonn."
    answers = [(text.rindex("Bonn"), "Bonn"), (8, "$5"), (14, "1990")]
    doc = make_question(NLP, "How much?", text, answers)
    spans = list(doc.spans["answer"])
    assert [span.text for span in spans] == ["Bonn", "$5", "1990s"]
    assert spans[0].start_char == len("How much?\n") + text.rindex("Bonn")
    assert doc.spans["answer"].attrs["texts"] == ["Bonn", "$5", "1990"]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        *(([answer], "does not begin at character") for answer in [(1, "Anna"), (-4, "Rex."), (4, " "), (99, "Anna")]),
        *(
            (wrong, "Expected a list of pairs")
            for wrong in (["Bonn"], (14, "Bonn"), [("Bonn", 14)], [(14.0, "Bonn")], 14)
        ),
        ([], "an empty list of right answers"),
    ],
)
def test_answers_that_are_refused(answers: Any, message: str) -> None:
    with pytest.raises(AnnotationError, match=message):
        make_question(NLP, "Who?", CONTEXT, answers)
    with pytest.raises(AnnotationError, match="its question or its context has no words"):
        make_question(NLP, " ", CONTEXT, [(14, "Bonn")])


def best(docs: Any) -> list[str]:
    return [doc.spans["answer"][0].text for doc in docs]


@pytest.fixture(scope="module")
def nlp() -> Language:
    spacy.util.fix_random_seed(0)
    nlp = answering()
    examples = gold(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(30):
        nlp.update(examples, sgd=optimizer)
    return nlp


@pytest.mark.slow
def test_it_learns(nlp: Language) -> None:
    assert best(nlp.pipe(make_questions(nlp, ASKED))) == RIGHT
    assert best(nlp.pipe([f"{question}\n{CONTEXT}" for question in QUESTIONS])) == RIGHT  # lines of a text
    scores = nlp.evaluate(gold(nlp))
    assert scores["answers_em"] == scores["answers_f1"] == 1.0


def test_the_best_answers_with_their_scores(nlp: Language) -> None:
    doc = nlp(make_question(nlp, *ASKED[0]))
    spans = list(doc.spans["answer"])
    assert len(spans) == 3
    scores = doc.spans["answer"].attrs["scores"]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert [span._.answer_score for span in spans] == scores
    assert doc[0:1]._.answer_score is None
    context = doc.spans["context"][0]
    assert all(context.start <= span.start < span.end <= context.end for span in spans)


def test_settings() -> None:
    nlp = answering(n_best=100, longest_answer=2)
    nlp.initialize(lambda: gold(nlp))
    doc = nlp(make_question(nlp, "Who?", "Anna or\n Bert ?"))
    assert {len(span) for span in doc.spans["answer"]} == {1, 2}
    assert len(doc.spans["answer"]) == 4 + 1 + 1  # whitespace neither begins nor ends an answer
    assert sum(doc.spans["answer"].attrs["scores"]) < 1


def test_nothing_to_answer(nlp: Language) -> None:
    docs = [nlp.make_doc(""), nlp.make_doc(" "), *make_questions(nlp, [("", CONTEXT), ("Who?", ""), ("Who?", "\n")])]
    assert [list(doc.spans["answer"]) for doc in nlp.pipe(docs)] == [[]] * 5
    doc = nlp(make_question(nlp, "Who?", "Anna"))
    assert best([doc]) == ["Anna"]
    assert nlp(make_question(nlp, "?", "...")).spans["answer"]


def test_spans_given_in_any_place(nlp: Language) -> None:
    doc = nlp.make_doc(f"Read this. {CONTEXT} Now tell: {ASKED[0][0]}")
    doc.spans["context"] = [doc.char_span(11, 11 + len(CONTEXT))]
    doc.spans["question"] = [doc[-5:]]
    doc.spans["question"].attrs["id"] = "q1"
    context = nlp(doc).spans["context"][0]
    assert doc.spans["question"].attrs == {"id": "q1"}
    assert context.start <= doc.spans["answer"][0].start < doc.spans["answer"][0].end <= context.end


def test_updates_with_nothing_to_learn(nlp: Language) -> None:
    before = nlp.get_pipe("answers").to_bytes()
    doc, empty = make_question(nlp, *ASKED[0]), nlp.make_doc("")
    component = nlp.get_pipe("answers")
    assert component.update([Example(empty, empty.copy())], losses={}) == {"answers": 0.0}
    assert component.update([Example(doc, doc.copy()), Example(empty, empty.copy())], losses={}) == {"answers": 0.0}
    assert nlp.get_pipe("answers").to_bytes() == before


def test_settings_of_a_saved_pipeline_are_those_of_its_config(tmp_path: Path) -> None:
    nlp = answering(n_best=2)
    nlp.initialize(lambda: gold(nlp))
    nlp.to_disk(tmp_path)
    changed = spacy.load(tmp_path, config={"components": {"answers": {"longest_answer": 1}}})
    for other in (changed, answering(n_best=2, longest_answer=1).from_bytes(nlp.to_bytes())):
        (doc,) = other.pipe(make_questions(other, ASKED[:1]))
        assert [len(span) for span in doc.spans["answer"]] == [1, 1]


# the best spans, against all spans tried one by one


@pytest.mark.parametrize("tokens", [1, 2, 7, 30])
@pytest.mark.parametrize("longest", [1, 3, 100])
@pytest.mark.parametrize("count", [1, 4, 1000])
def test_as_brute_force(tokens: int, longest: int, count: int) -> None:
    rng = np.random.default_rng(tokens)
    scores = rng.normal(size=(tokens, 2)).astype("f") * 3
    allowed = rng.random(tokens) < 0.8
    allowed[0] = True
    weights = np.exp(scores.astype(float)) * allowed[:, None]
    p = weights / weights.sum(axis=0)
    spans = [
        (i, j + 1, p[i, 0] * p[j, 1])
        for i in range(tokens)
        for j in range(i, min(i + longest, tokens))
        if allowed[i] and allowed[j]
    ]
    expected = sorted(spans, key=lambda span: (-span[2], *span[:2]))[:count]
    got = best_spans(scores, allowed, longest, count)
    assert [span[:2] for span in got] == [span[:2] for span in expected]
    np.testing.assert_allclose([score for *_, score in got], [score for *_, score in expected], rtol=1e-6)


def test_equal_spans_come_in_the_order_of_the_text() -> None:
    got = best_spans(np.zeros((3, 2), "f"), np.ones(3, bool), 2, 4)
    assert [span[:2] for span in got] == [(0, 1), (0, 2), (1, 2), (1, 3)]
    assert all(score == pytest.approx(1 / 9) for *_, score in got)
    assert best_spans(np.zeros((3, 2), "f"), np.zeros(3, bool), 2, 4) == []


# the loss


def loss_of(examples: list[Example], scores: list[Any]) -> tuple[float, list[Any]]:
    loss, gradients = answering().get_pipe("answers").get_loss(examples, scores)  # type: ignore[attr-defined]
    return loss, gradients


def starts_and_ends(example: Example) -> list[list[int]]:
    """The tokens of the context that are to become more probable."""
    length = len(example.predicted) - 3  # a question of two tokens, and the line break
    _, (gradient,) = loss_of([example], [np.zeros((length, 2), "f")])
    return [np.flatnonzero(gradient[:, side] < 0).tolist() for side in (0, 1)]


def answered(*answers: str) -> Doc:
    return make_question(NLP, "Where?", CONTEXT, [(CONTEXT.index(answer), answer) for answer in answers])


def test_the_loss_is_that_of_torch() -> None:
    references = [answered("Bonn. She"), answered("dog", "called Rex"), make_question(NLP, "Where?", CONTEXT)]
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(12, 2)).astype("f") for _ in references]
    loss, gradients = loss_of([Example(doc.copy(), doc) for doc in references], scores)
    targets = torch.zeros(2, 12, 2)
    targets[0, 3, 0] = targets[0, 5, 1] = 1
    targets[1, [8, 9], 0] = targets[1, [8, 10], 1] = 1
    tensors = [torch.tensor(values, requires_grad=True) for values in scores[:2]]
    expected = torch.stack([-(x.softmax(0) * y).sum(0).log().sum() for x, y in zip(tensors, targets)]).mean()
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    for gradient, tensor in zip(gradients, tensors):
        np.testing.assert_allclose(gradient, tensor.grad, atol=1e-6)
    assert not gradients[2].any()  # nobody knows the answer
    hopeless = np.full((12, 2), -1e4, "f")
    hopeless[0] = 1e4
    loss, (gradient,) = loss_of([Example(references[0].copy(), references[0])], [hopeless])
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()


def test_starts_and_ends_in_the_context() -> None:
    reference = answered("Bonn", "a dog")
    assert starts_and_ends(Example(NLP.make_doc(reference.text), reference)) == [[3, 7], [3, 8]]
    assert starts_and_ends(Example(make_question(NLP, "Where?", CONTEXT), reference)) == [[3, 7], [3, 8]]


def test_other_tokens() -> None:
    reference = answered("in Bonn")
    words, spaces = zip(*((token.text, bool(token.whitespace_)) for token in reference))
    at = words.index("Bonn")
    halves = [*words[:at], "Bo", "nn", *words[at + 1 :]], [*spaces[:at], False, spaces[at], *spaces[at + 1 :]]
    assert starts_and_ends(Example(Doc(NLP.vocab, *halves), reference)) == [[2], [4]]
    joined = [*words[:at], "Bonn.", *words[at + 2 :]], [*spaces[:at], *spaces[at + 1 :]]
    # no token ends where the answer does
    assert starts_and_ends(Example(Doc(NLP.vocab, *joined), reference)) == [[], []]


def test_wrong_answers() -> None:
    doc = make_question(NLP, "Where?", CONTEXT)
    for start, end in ((0, 1), (0, 5), (4, 4), (len(doc) - 1, len(doc))):
        doc.spans["context"] = [doc[3 : len(doc) - 1]]
        doc.spans["answer"] = [doc[start:end]]
        with pytest.raises(AnnotationError, match="not in its context"):
            loss_of([Example(NLP.make_doc(doc.text), doc)], [])
        if start < end:
            with pytest.raises(AnnotationError, match="not in its context"):  # and not a score of 0
                score_answers([Example(NLP.make_doc(doc.text), doc)])


def test_predicted_docs_without_a_context() -> None:
    reference = answered("Bonn")
    words = [token.text for token in reference if not token.is_space]
    with pytest.raises(AnnotationError, match="line break"):
        loss_of([Example(Doc(NLP.vocab, words), reference)], [])
    with pytest.raises(AnnotationError, match="predicted doc"):
        loss_of([Example(Doc(NLP.vocab), reference)], [])


# scores, against the functions of SQuAD's evaluate-v1.1.py, in its own order of steps


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


WORDS = ["The", "the", "a", "An", "dog", "dogs'", "Dog", "U.S.", "$5", "theatre"]
WORDS += ["-", "\u2013", "  ", "A-B", "x\u00a0y"]


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
    unknown = make_question(NLP, "When?", "Now.")  # it does not count
    unknown = Example(unknown, unknown.copy())
    assert score_answers([unknown]) == {"answers_em": None, "answers_f1": None}
    assert score_answers([*examples, unknown]) == {"answers_em": 1 / 4, "answers_f1": pytest.approx((1 + 2 / 3) / 4)}
    doc = examples[0].predicted
    doc.spans["answer"] = SpanGroup(doc, spans=[doc[4:5], *doc.spans["answer"]])
    assert score_answers(examples)["answers_em"] == 0  # the first predicted answer alone counts


def test_texts_count_as_they_were_given() -> None:
    doc = make_question(NLP, "When?", "In the 1990s.")
    doc.spans["answer"] = [doc[5:6]]
    assert doc.spans["answer"][0].text == "1990s"
    right = make_question(NLP, "When?", "In the 1990s.", [(7, "1990")])
    assert score_answers([Example(doc, right)])["answers_em"] == 0
    right.spans["answer"].attrs.clear()
    assert score_answers([Example(doc, right)])["answers_em"] == 1
