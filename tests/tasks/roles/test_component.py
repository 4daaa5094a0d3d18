"""The component in pipelines of spaCy: training, files, processes, listeners, docs of all kinds."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import spacy
from role_cases import GIVEN, SMALL, SMALL_EMBED, SMALL_ENCODE, doc_with, example, examples, roles_in, trained
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from thinc.api import Model

from spacy_elmo.errors import AnnotationError, SettingsError, UnknownLabelWarning
from spacy_elmo.tasks.roles import component
from spacy_elmo.tasks.shared import build_given_spans

TEXT, ROLES = GIVEN[0]


@cache
def learned() -> Language:
    return trained()


@pytest.mark.slow
def test_it_learns() -> None:
    nlp = learned()
    for text, roles in GIVEN:
        assert roles_in(nlp(text)) == roles
    scores = nlp.evaluate(examples(nlp))
    assert (scores["roles_f"], scores["predicates_f"], scores["roles_given"]) == (1.0, 1.0, 0.0)


@pytest.mark.slow
def test_given_predicates_stay() -> None:
    nlp = learned()
    doc = nlp.make_doc(TEXT)
    doc.spans["predicates"] = [doc[6:7]]
    doc = nlp(doc)
    assert roles_in(doc) == {6: ROLES[6]}
    assert "roles:1" not in doc.spans
    doc.spans["predicates"] = []
    assert not roles_in(nlp(doc))
    assert sorted(doc.spans) == ["predicates"]
    del doc.spans["predicates"]
    assert roles_in(nlp(doc)) == roles_in(nlp(nlp(doc))) == ROLES  # found again at each run
    given = [next(build_given_spans(["predicates"])(nlp, one)) for one in examples(nlp)]
    assert nlp.evaluate(given)["roles_given"] == 1.0


@pytest.mark.slow
def test_rows_are_scored_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = learned()
    docs = [nlp.make_doc(text) for text, _ in GIVEN]
    scored = []
    predict = Model.predict

    def counting(model: Model[Any, Any], inputs: Any) -> Any:
        if model.name == "role_rows":
            scored.append(len(inputs[1]))
        return predict(model, inputs)

    monkeypatch.setattr(component, "MAX_BATCH_TOKENS", 1)
    monkeypatch.setattr(Model, "predict", counting)
    found = [roles_in(doc) for doc in nlp.get_pipe("semantic_roles").pipe(docs)]
    assert found == [roles for _, roles in GIVEN]
    assert [[span.start for span in doc.spans["predicates"]] for doc in docs] == [[1, 6], [2], []]  # as in the text
    assert scored == [1, 1, 1]


@pytest.mark.slow
def test_files_and_processes(tmp_path: Path) -> None:
    nlp = learned()
    texts = [text for text, _ in GIVEN] * 2
    expected = [roles for _, roles in GIVEN] * 2
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    other = spacy.blank("en")
    other.add_pipe("semantic_roles", config={"model": SMALL}).from_bytes(nlp.get_pipe("semantic_roles").to_bytes())
    for one in (nlp, loaded, other):
        assert [roles_in(doc) for doc in one.pipe(texts, batch_size=3)] == expected
    assert [roles_in(doc) for doc in nlp.pipe(texts, n_process=2)] == expected
    changed = {"find_predicates": False, "threshold": 0.75, "reach": 7}
    pipe = spacy.load(tmp_path / "saved", config={"components": {"semantic_roles": changed}}).get_pipe("semantic_roles")
    assert {name: pipe.cfg[name] for name in changed} == changed
    assert loaded.get_pipe("semantic_roles").labels == ("ARG0", "ARG1", "ARG2", "ARGM-TMP", "V")
    assert not list((tmp_path / "saved").rglob("*.pkl"))


@pytest.mark.slow
def test_docs_without_roles() -> None:
    nlp = learned()
    assert roles_in(nlp("")) == {}
    assert [len(doc) for doc in nlp.pipe(["", "Mary", ""])] == [0, 1, 0]
    nlp("   ")
    assert roles_in(nlp("A fine day")) == {}


@pytest.mark.slow
def test_whitespace_is_no_predicate() -> None:
    nlp = learned()
    nlp.get_pipe("semantic_roles").cfg["threshold"] = 0.0  # so that each token is likely enough
    doc = nlp("Mary \n\n gave")
    assert [span.text for span in doc.spans["predicates"]] == ["Mary", "gave"]


@pytest.mark.slow
def test_sentences_bound_arguments() -> None:
    nlp = learned()
    doc = nlp.make_doc("Mary gave John a book and left early . The dog slept")
    for token in doc:
        token.is_sent_start = token.i in (0, 9)
    doc.spans["predicates"] = [doc[1:2], doc[11:12]]
    roles = roles_in(nlp(doc))
    assert roles[11] == [(9, 11, "ARG0"), (11, 12, "V")]
    assert all(end <= 9 for _, end, _ in roles[1])


@pytest.mark.slow
def test_the_seed_decides_everything() -> None:
    first, second = (trained(steps=3).get_pipe("semantic_roles").model.to_bytes() for _ in range(2))
    assert first == second


def elmo_model(source: dict[str, Any]) -> dict[str, Any]:
    elmo = {
        "@architectures": "spacy-elmo.Tok2Vec.v1",
        "source": source,
        "mix": {"@layers": "spacy-elmo.ScalarMix.v1"},
    }
    tok2vec = {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "embed": SMALL_EMBED,
        "elmo": elmo,
        "encode": SMALL_ENCODE,
    }
    return SMALL | {"tok2vec": tok2vec}


@pytest.mark.slow
def test_with_elmo() -> None:
    listener = {"@architectures": "spacy-elmo.Listener.v1", "width": 256, "upstream": "elmo"}
    nlp = trained(30, elmo_model(listener), ["elmo"])
    assert [roles_in(nlp(text)) for text, _ in GIVEN] == [roles for _, roles in GIVEN]
    nlp.replace_listeners("elmo", "semantic_roles", ["model.tok2vec"])
    nlp.remove_pipe("elmo")
    assert [roles_in(nlp(text)) for text, _ in GIVEN] == [roles for _, roles in GIVEN]


@pytest.mark.slow
def test_with_a_shared_tok2vec() -> None:
    nlp = spacy.blank("en")
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": SMALL_EMBED, "encode": SMALL_ENCODE}
    nlp.add_pipe("tok2vec", config={"model": tok2vec})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16, "upstream": "*"}
    nlp.add_pipe("semantic_roles", config={"model": SMALL | {"tok2vec": listener}})
    given = examples(nlp)
    nlp.initialize(lambda: given)
    before = nlp.get_pipe("tok2vec").model.to_bytes()
    losses: dict[str, float] = {}
    nlp.update(given, losses=losses, drop=0.2)
    assert losses["semantic_roles"] > 0
    assert nlp.get_pipe("tok2vec").model.to_bytes() != before  # gradients reach it


def small(**settings: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("semantic_roles", config={"model": SMALL, **settings})
    return nlp


def test_labels() -> None:
    nlp = small()
    pipe = nlp.get_pipe("semantic_roles")
    nlp.initialize(lambda: examples(nlp))
    assert pipe.label_data == ["ARG0", "ARG1", "ARG2", "ARGM-TMP", "V"]
    assert pipe.add_label("V") == 0
    with pytest.raises(ValueError, match="E922"):
        pipe.add_label("ARG9")
    other = small()
    other.get_pipe("semantic_roles").initialize(lambda: examples(other), labels=["V", "ARG0"])
    assert other.get_pipe("semantic_roles").label_data == ["V", "ARG0"]
    with pytest.warns(UnknownLabelWarning, match=r"'semantic_roles' does not have .*: ARG1, ARG2, ARGM-TMP\."):
        other.get_pipe("semantic_roles").update(examples(other), sgd=other.create_optimizer())


def test_initialized_without_roles() -> None:
    nlp = small()
    given = [example("nothing here", None, nlp.vocab), example("A fine day", {}, nlp.vocab)]
    with pytest.raises(AnnotationError, match=r"none of its examples \(2\) has roles: "):
        nlp.initialize(lambda: given)


def test_labels_that_were_added_need_no_examples() -> None:
    nlp = small()
    pipe = nlp.get_pipe("semantic_roles")
    pipe.add_label("V")
    nlp.initialize()
    assert pipe.labels == ("V",)
    assert nlp("Mary slept").text == "Mary slept"


def test_not_initialized() -> None:
    with pytest.raises(ValueError, match="E109"):
        small()("Mary slept")


def test_docs_that_teach_nothing() -> None:
    nlp = small()
    nlp.initialize(lambda: examples(nlp))
    losses = nlp.update([example("not annotated", None, nlp.vocab), example([], None, nlp.vocab)])
    assert losses["semantic_roles"] == 0
    assert nlp.update([example([], None, nlp.vocab)])["semantic_roles"] == 0


def test_wrong_examples() -> None:
    nlp = small()
    nlp.initialize(lambda: examples(nlp))
    wrong = example(TEXT, ROLES, nlp.vocab)
    wrong.reference.spans["predicates"] = [wrong.reference[1:3]]
    with pytest.raises(AnnotationError, match="predicate of 2 tokens"):
        nlp.update([wrong])


def test_no_predicates_given_and_none_looked_for() -> None:
    nlp = small(find_predicates=False)
    nlp.initialize(lambda: examples(nlp))
    with pytest.raises(AnnotationError, match="find_predicates is false in the component 'semantic_roles'"):
        nlp("Mary slept")
    assert roles_in(nlp("")) == {}
    doc = doc_with("The dog slept", {}, nlp.vocab)
    assert roles_in(nlp(doc)) == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"threshold": "0.5"}, "threshold is '0.5'. Expected a number from 0 to 1"),
        ({"reach": 0}, "reach is 0"),
        ({"model": SMALL | {"depth": 0}}, "depth is 0"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacy.blank("en").add_pipe("semantic_roles", config={"model": SMALL, **settings})


def test_an_untrained_pipe_of_another_corpus(tmp_path: Path) -> None:
    """Docs of a corpus file have no spans when they are processed."""
    nlp = small()
    spacy.tokens.DocBin(docs=[doc_with(TEXT, ROLES, nlp.vocab)]).to_disk(tmp_path / "x.spacy")

    def read() -> Iterator[Example]:
        yield from Corpus(tmp_path / "x.spacy")(nlp)

    nlp.initialize(read)
    docs: list[Doc] = [one.predicted for one in read()]
    assert not docs[0].spans
    assert nlp.evaluate(list(read()))["roles_given"] == 0.0
