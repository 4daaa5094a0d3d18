"""The component answers: it learns, writes answers to docs, and works wherever spaCy uses components."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from answers_cases import CONTEXT, QUESTIONS, answering, gold, trained
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from tasks import WIDTH, tok2vec

from spacy_elmo.errors import AnnotationError, SettingsError
from spacy_elmo.tasks.answers.questions import make_question, make_questions

ASKED = [(question, CONTEXT) for question in QUESTIONS]
RIGHT = list(QUESTIONS.values())


def best(docs: Any) -> list[str]:
    return [doc.spans["answer"][0].text for doc in docs]


@pytest.fixture(scope="module")
def nlp() -> Language:
    spacy.util.fix_random_seed(0)
    nlp = answering()
    trained(nlp)
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
    for setting in ("n_best", "longest_answer"):
        with pytest.raises(SettingsError, match=f"{setting} is 0"):
            answering(**{setting: 0})


def test_docs_keep_answers_in_files(nlp: Language) -> None:
    doc = nlp(make_question(nlp, *ASKED[0]))
    (binned,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
    for copy in (binned, Doc(nlp.vocab).from_bytes(doc.to_bytes())):
        assert [span.text for span in copy.spans["answer"]] == [span.text for span in doc.spans["answer"]]
        assert [span._.answer_score for span in copy.spans["answer"]] == doc.spans["answer"].attrs["scores"]


def test_nothing_to_answer(nlp: Language) -> None:
    docs = [nlp.make_doc(""), nlp.make_doc(" "), *make_questions(nlp, [("", CONTEXT), ("Who?", ""), ("Who?", "\n")])]
    assert [list(doc.spans["answer"]) for doc in nlp.pipe(docs)] == [[]] * 5
    doc = nlp(make_question(nlp, "Who?", "Anna"))
    assert best([doc]) == ["Anna"]
    assert nlp(make_question(nlp, "?", "...")).spans["answer"]


def test_docs_that_are_no_question(nlp: Language) -> None:
    with pytest.raises(AnnotationError, match="no line breaks"):
        nlp("A text of one line.")
    doc = make_question(nlp, *ASKED[0])
    doc.spans["context"] = [doc[6:7], doc[8:9]]
    with pytest.raises(AnnotationError, match="one span for each key"):
        nlp(doc)


def test_spans_given_in_any_place(nlp: Language) -> None:
    doc = nlp.make_doc(f"Read this. {CONTEXT} Now tell: {ASKED[0][0]}")
    doc.spans["context"] = [doc.char_span(11, 11 + len(CONTEXT))]
    doc.spans["question"] = [doc[-5:]]
    doc.spans["question"].attrs["id"] = "q1"
    context = nlp(doc).spans["context"][0]
    assert doc.spans["question"].attrs == {"id": "q1"}
    assert context.start <= doc.spans["answer"][0].start < doc.spans["answer"][0].end <= context.end


def test_initialize_without_answers() -> None:
    nlp = answering()
    with pytest.raises(AnnotationError, match=r"none of its examples .* has a question, a context and right answers"):
        nlp.initialize()
    doc = make_question(nlp, *ASKED[0], [])
    with pytest.raises(AnnotationError, match="without a span"):
        nlp.initialize(lambda: [Example(doc.copy(), doc)])


def test_updates_with_nothing_to_learn(nlp: Language) -> None:
    before = nlp.get_pipe("answers").to_bytes()
    doc, empty = make_question(nlp, *ASKED[0]), nlp.make_doc("")
    component = nlp.get_pipe("answers")
    assert component.update([Example(empty, empty.copy())], losses={}) == {"answers": 0.0}
    assert component.update([Example(doc, doc.copy()), Example(empty, empty.copy())], losses={}) == {"answers": 0.0}
    assert nlp.get_pipe("answers").to_bytes() == before


def test_it_is_saved_and_loaded(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path)
    copies = [
        spacy.load(tmp_path),
        pickle.loads(pickle.dumps(nlp)),
        answering().from_bytes(nlp.to_bytes()),
    ]
    expected = list(nlp.pipe(make_questions(nlp, ASKED)))
    for copy in copies:
        for doc, other in zip(expected, copy.pipe(make_questions(copy, ASKED))):
            assert [span.text for span in other.spans["answer"]] == [span.text for span in doc.spans["answer"]]
            np.testing.assert_allclose(other.spans["answer"].attrs["scores"], doc.spans["answer"].attrs["scores"])


def test_settings_of_a_saved_pipeline_can_be_changed(nlp: Language, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path)
    config = {"components": {"answers": {"n_best": 1, "longest_answer": 1}}}
    for other in (
        spacy.load(tmp_path, config=config),
        answering(n_best=1, longest_answer=1).from_bytes(nlp.to_bytes()),
    ):
        (doc,) = other.pipe(make_questions(other, ASKED[:1]))
        assert [len(span) for span in doc.spans["answer"]] == [1]


def test_settings_that_were_changed_before_saving_stay(tmp_path: Path) -> None:
    nlp = answering()
    nlp.initialize(lambda: gold(nlp))
    component = nlp.get_pipe("answers")
    component.cfg["n_best"] = 2
    nlp.to_disk(tmp_path)
    changed = {"components": {"answers": {"longest_answer": 5}}}
    for other, longest in ((spacy.load(tmp_path), 17), (spacy.load(tmp_path, config=changed), 5)):
        loaded = other.get_pipe("answers")
        assert (loaded.cfg["n_best"], loaded.cfg["longest_answer"]) == (2, longest)
        again = answering(longest_answer=longest).from_bytes(other.to_bytes()).get_pipe("answers")
        assert again.cfg == loaded.cfg


def test_what_an_earlier_version_saved() -> None:
    """It has the settings alone; they are used as before."""
    nlp, other = answering(), answering(n_best=1)
    nlp.initialize(lambda: gold(nlp))
    nlp.get_pipe("answers").cfg = {"n_best": 2, "longest_answer": 3}
    other.from_bytes(nlp.to_bytes())
    assert {**other.get_pipe("answers").cfg, "configured": None} == {
        "n_best": 2,
        "longest_answer": 3,
        "configured": None,
    }


@pytest.mark.slow
def test_processes(nlp: Language) -> None:
    expected = [doc.spans["answer"].attrs["scores"] for doc in nlp.pipe(make_questions(nlp, ASKED))]
    docs = list(nlp.pipe(make_questions(nlp, ASKED), n_process=2, batch_size=1))
    for doc, scores in zip(docs, expected):
        np.testing.assert_allclose([span._.answer_score for span in doc.spans["answer"]], scores, rtol=1e-4)


def test_the_same_seed_gives_the_same_component() -> None:
    saved = []
    for _ in range(2):
        spacy.util.fix_random_seed(3)
        nlp = answering()
        trained(nlp, 2, drop=0.3)
        saved.append(nlp.get_pipe("answers").model.to_bytes())
    assert saved[0] == saved[1]


KEYS = {"@span_getters": "spacy-elmo.span_groups.v1", "keys": ["question", "context"]}


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [True, False])
def test_with_elmo(frozen: bool) -> None:
    spacy.util.fix_random_seed(0)
    nlp = answering(tok2vec(encode="none", width=WIDTH), pipeline(model={"get_spans": KEYS}, frozen=frozen))
    losses = trained(nlp)
    assert losses["answers"] < 1.0
    assert best(nlp.pipe(make_questions(nlp, ASKED))) == RIGHT
    nlp.replace_listeners("elmo", "answers", ["model.tok2vec"])
    assert best(nlp.pipe(make_questions(nlp, ASKED))) == RIGHT
