"""Systems that learn nothing, on docs whose scores are worked out by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.vocab import Vocab

from scripts.runs.trivial_systems import main
from spacy_elmo.errors import CommandError
from spacy_elmo.tasks.answers.questions import make_question
from spacy_elmo.tasks.coreference.annotations import annotate

VOCAB = Vocab()
Scores = Callable[..., dict[str, float]]


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scores:
    """Scores of a task on docs, which are its training part as well."""
    monkeypatch.chdir(tmp_path)

    def run(task: str, *docs: Doc) -> dict[str, float]:
        (tmp_path / "corpus" / task).mkdir(parents=True)
        for part in ("train", "test", "sick_test"):
            DocBin(store_user_data=True, docs=docs).to_disk(tmp_path / "corpus" / task / f"{part}.spacy")
        main(task)
        result = json.loads((tmp_path / "results" / task / "trivial.json").read_text(encoding="utf-8"))
        found: dict[str, float] = result["tests"]["test"]
        return found

    return run


def test_roles(scores: Scores) -> None:
    doc = Doc(VOCAB, words=["Yesterday", "Mary", "gave", "John", "books", "."])
    doc.spans["predicates"] = [doc[2:3]]
    parts = ((0, 1, "ARGM-TMP"), (1, 2, "ARG0"), (2, 3, "V"), (3, 4, "ARG2"), (4, 5, "ARG1"))
    doc.spans["roles:2"] = [Span(doc, start, end, label) for start, end, label in parts]
    got = scores("roles", doc)
    assert (got["roles_p"], got["roles_r"]) == (0.5, 0.25)  # of ARG0 and ARG1, ARG0 is right; four are to be found


def test_coreference(scores: Scores) -> None:
    doc = Doc(
        VOCAB, words=["When", "Anna", "Lee", "met", "Bob", ",", "she", "saw", "Anna", "Lee", ".", "Then", "He", "left"]
    )
    annotate(doc, [[(1, 3), (6, 7), (8, 10)], [(4, 5), (12, 13)]])
    got = scores("coreference", doc)
    assert got["coref_mentions_f"] == 1.0  # "When" and "Then" begin sentences
    assert (got["coref_muc_p"], got["coref_muc_r"]) == (1.0, 1 / 3)  # one link of three, the one of the same words


def test_entailment(scores: Scores) -> None:
    docs = [Doc(VOCAB, words=["a"]) for _ in range(4)]
    for doc, label in zip(docs, "xyyy"):
        doc.cats = {name: float(name == label) for name in "xy"}
    assert scores("entailment", *docs)["cats_acc"] == 0.75


def test_answers(scores: Scores) -> None:
    nlp = spacy.blank("en")
    text = "Rex barks. Anna lives in Bonn. Anna sings."
    doc = make_question(nlp, "Where does Anna live, in what town of lives?", text, [(text.index("Bonn"), "Bonn")])
    got = scores("answers", doc)
    assert (got["answers_em"], got["answers_f1"]) == (0.0, 2 * 1 / (4 + 1))  # "anna lives in bonn" and "bonn"


def test_a_task_without_one() -> None:
    with pytest.raises(CommandError, match="the task is 'ner'"):
        main("ner")
