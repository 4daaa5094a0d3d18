"""Right answers become starts and ends; wrong annotations become errors."""

import pytest
import spacy
from answers_cases import CONTEXT
from spacy.tokens import Doc
from spacy.training import Example

from spacy_elmo.errors import AnnotationError
from spacy_elmo.tasks.answers.component import check_answers, targets_of
from spacy_elmo.tasks.answers.questions import make_question

NLP = spacy.blank("en")
BONN = (CONTEXT.index("Bonn"), "Bonn")


def starts_and_ends(example: Example) -> list[list[int]]:
    targets = targets_of(example)
    assert targets is not None
    return [targets[:, side].nonzero()[0].tolist() for side in (0, 1)]


def test_starts_and_ends_in_the_context() -> None:
    reference = make_question(NLP, "Where?", CONTEXT, [BONN, (CONTEXT.index("a dog"), "a dog")])
    assert starts_and_ends(Example(NLP.make_doc(reference.text), reference)) == [[3, 7], [3, 8]]
    assert starts_and_ends(Example(make_question(NLP, "Where?", CONTEXT), reference)) == [[3, 7], [3, 8]]


def test_other_tokens() -> None:
    reference = make_question(NLP, "Where?", CONTEXT, [(CONTEXT.index("in"), "in Bonn")])
    words, spaces = zip(*((token.text, bool(token.whitespace_)) for token in reference))
    at = words.index("Bonn")
    halves = [*words[:at], "Bo", "nn", *words[at + 1 :]], [*spaces[:at], False, spaces[at], *spaces[at + 1 :]]
    assert starts_and_ends(Example(Doc(NLP.vocab, *halves), reference)) == [[2], [4]]
    joined = [*words[:at], "Bonn.", *words[at + 2 :]], [*spaces[:at], *spaces[at + 1 :]]
    assert targets_of(Example(Doc(NLP.vocab, *joined), reference)) is None  # no token ends where the answer does


def test_unknown_answers_teach_nothing() -> None:
    doc = make_question(NLP, "Where?", CONTEXT)
    assert not check_answers(doc)
    assert targets_of(Example(doc.copy(), doc)) is None


def test_wrong_answers() -> None:
    doc = make_question(NLP, "Where?", CONTEXT, [])
    with pytest.raises(AnnotationError, match='a span group "answer" without a span'):
        check_answers(doc)
    for start, end in ((0, 1), (0, 5), (4, 4), (len(doc) - 1, len(doc))):
        doc.spans["context"] = [doc[3 : len(doc) - 1]]
        doc.spans["answer"] = [doc[start:end]]
        with pytest.raises(AnnotationError, match="not in its context"):
            check_answers(doc)


def test_predicted_docs_without_a_context() -> None:
    reference = make_question(NLP, "Where?", CONTEXT, [BONN])
    words = [token.text for token in reference if not token.is_space]
    with pytest.raises(AnnotationError, match="line break"):
        targets_of(Example(Doc(NLP.vocab, words), reference))
    with pytest.raises(AnnotationError, match="predicted doc"):
        targets_of(Example(Doc(NLP.vocab), reference))
