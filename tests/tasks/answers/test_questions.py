"""Questions and paragraphs in one doc."""

from typing import Any

import pytest
import spacy
from answers_cases import CONTEXT

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.answers.questions import make_question, make_questions, question_of

NLP = spacy.blank("en")


def test_a_doc_of_two_texts() -> None:
    doc = make_question(NLP, "Where does\nAnna live?", CONTEXT)
    assert doc.text == f"Where does Anna live?\n{CONTEXT}"
    assert [span.text for span in doc.spans["question"]] == ["Where does Anna live?"]
    assert [span.text for span in doc.spans["context"]] == [CONTEXT]
    assert "answer" not in doc.spans


def test_answers_become_spans_of_whole_tokens() -> None:
    text = "It cost $5-6 (1990s) in Bonn, in Bonn."
    answers = [(text.rindex("Bonn"), "Bonn"), (8, "$5"), (14, "1990")]
    doc = make_question(NLP, "How much?", text, answers)
    spans = list(doc.spans["answer"])
    assert [span.text for span in spans] == ["Bonn", "$5", "1990s"]
    assert spans[0].start_char == len("How much?\n") + text.rindex("Bonn")
    assert doc.spans["answer"].attrs["texts"] == ["Bonn", "$5", "1990"]


def test_question_and_context_of_docs_without_spans() -> None:
    given = make_question(NLP, "Where?", "In Bonn.\nOr not.")
    plain = NLP.make_doc(given.text)
    assert [(span.start, span.end) for span in question_of(plain) or ()] == [
        (span.start, span.end) for span in question_of(given) or ()
    ]


@pytest.mark.parametrize("texts", [("", ""), ("", "In Bonn."), ("Where?", ""), ("Where?", " \n ")])
def test_no_question_or_no_context(texts: tuple[str, str]) -> None:
    (doc,) = make_questions(NLP, [texts])
    assert question_of(doc) is None


def test_no_words_at_all() -> None:
    assert question_of(NLP.make_doc("")) is None
    assert question_of(NLP.make_doc(" \n")) is None


@pytest.mark.parametrize("answer", [(1, "Anna"), (-4, "Rex."), (0, ""), (14, "bonn"), (99, "Anna")])
def test_answers_that_are_not_there(answer: tuple[int, str]) -> None:
    with pytest.raises(AnnotationError, match="does not begin at character"):
        make_question(NLP, "Who?", CONTEXT, [answer])


@pytest.mark.parametrize("answers", [["Bonn"], (14, "Bonn"), [("Bonn", 14)], [(14,)], [(14.0, "Bonn")], "Bonn", 14])
def test_answers_that_are_no_pairs(answers: Any) -> None:
    with pytest.raises(AnnotationError, match="Expected a list of pairs: the place of the answer's first character"):
        make_question(NLP, "Who?", CONTEXT, answers)
