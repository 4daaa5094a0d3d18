"""Docs whose vectors were removed, or that were written and read after the pipe."""

import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from pipelines import files, pipeline
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo import restore_vectors
from spacy_elmo.errors import ElmoError, LostVectorsWarning, NotEmbeddedError

TEXT = "We sat on the river bank . The bank lent money ."


@pytest.fixture(scope="module")
def nlp() -> Language:
    return pipeline(None, set_vectors=True)


def test_none_frees_the_layers_and_vectors(nlp: Language) -> None:
    for name in ("elmo", "elmo_layers"):
        doc = nlp(TEXT)
        doc._.set(name, None)
        assert not doc.user_data
        with pytest.raises(NotEmbeddedError, match="set to None"):
            _ = doc[0]._.elmo
        assert not doc.has_vector
    doc = nlp(TEXT)
    with pytest.raises(ElmoError, match="can only be set to None"):
        doc._.elmo = 1
    for part in (doc[0], doc[0:2]):
        with pytest.raises(ElmoError, match=r"set doc\._\.elmo to None"):
            part._.elmo = None
    assert doc._.elmo.shape == (12, 256)


@pytest.mark.parametrize("store", ["layers", "layers_float16", "mix"])
def test_doc_cleaner(store: str) -> None:
    nlp = pipeline(store=store)
    nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo": None}})
    for doc in (nlp(TEXT), *nlp.pipe([TEXT, ""])):
        assert not doc.user_data


@pytest.mark.slow
@pytest.mark.parametrize("store", ["layers", "layers_float16", "mix"])
def test_written_docs_get_their_vectors_back(store: str) -> None:
    nlp = pipeline(None, set_vectors=True, store=store)
    doc = nlp(TEXT)
    docbin = DocBin(docs=[doc], store_user_data=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # W109: spaCy says that hooks are not kept
        copies = [
            Doc(nlp.vocab).from_bytes(doc.to_bytes()),
            *DocBin().from_bytes(docbin.to_bytes()).get_docs(nlp.vocab),
        ]
    for copy in copies:
        assert not copy.has_vector
        assert restore_vectors(copy) is copy
        for part, other in ((copy, doc), (copy[5], doc[5]), (copy[3:6], doc[3:6])):
            assert part.has_vector
            np.testing.assert_array_equal(part.vector, other.vector)
            assert part.vector_norm == pytest.approx(other.vector_norm)
            assert part.similarity(doc[8]) == pytest.approx(other.similarity(doc[8]))
        assert copy[5].similarity(copy[8]) < 0.99  # two banks
    for copy in (doc.copy(), pickle.loads(pickle.dumps(doc))):  # these keep hooks
        assert copy[5].similarity(doc[8]) == pytest.approx(doc[5].similarity(doc[8]))


def written(doc: Doc) -> Doc:
    """The doc from its bytes, without hooks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # W109: spaCy says that hooks are not kept
        return Doc(doc.vocab).from_bytes(doc.to_bytes())


def read_elmo(doc: Doc) -> None:
    doc._.elmo  # noqa: B018


def read_layers(doc: Doc) -> None:
    doc._.elmo_layers  # noqa: B018


def read_a_token(doc: Doc) -> None:
    doc[5]._.elmo  # noqa: B018


def read_a_tokens_layers(doc: Doc) -> None:
    doc[5]._.elmo_layers  # noqa: B018


def read_a_span(doc: Doc) -> None:
    doc[3:6]._.elmo  # noqa: B018


@pytest.mark.parametrize("read", [read_elmo, read_layers, read_a_token, read_a_tokens_layers, read_a_span])
def test_reading_an_attribute_restores_vectors(nlp: Language, read: Callable[[Doc], None]) -> None:
    doc = nlp(TEXT)
    copy = written(doc)
    assert copy[5].vector.shape == (0,)
    read(copy)
    for part, other in ((copy, doc), (copy[5], doc[5]), (copy[3:6], doc[3:6])):
        np.testing.assert_array_equal(part.vector, other.vector)
        assert part.has_vector
    assert copy[5].similarity(copy[8]) == doc[5].similarity(doc[8]) < 0.99  # two banks


def test_comparing_restores_the_other_docs_vectors(nlp: Language) -> None:
    doc = nlp(TEXT)
    for i, part in ((0, doc), (5, doc[5]), (8, doc[5:8])):
        copy = written(doc)
        other = copy if i == 0 else copy[i] if i == 5 else copy[5:8]
        assert part.similarity(other) == pytest.approx(1.0)
        assert copy[8].has_vector


def test_what_is_not_restored() -> None:
    plain = written(pipeline()(TEXT))  # set_vectors is off
    removed = pipeline(set_vectors=True)(TEXT)
    removed._.elmo = None
    assert not removed.user_data
    read_elmo(plain)
    assert plain[5].vector.shape == (0,)
    own = written(pipeline(set_vectors=True)(TEXT))
    own.user_token_hooks["vector"] = lambda token: np.ones(3)  # a hook of somebody else
    read_elmo(own)
    assert own[5].vector.shape == (3,)
    embedded_again = pipeline()(pipeline(set_vectors=True)(TEXT))
    read_elmo(copy := written(embedded_again))
    assert not copy.has_vector


def test_the_last_pipe_that_set_vectors_is_restored() -> None:
    nlp = pipeline("random_a", set_vectors=True)
    nlp.add_pipe("elmo", name="second", config=files("random_b") | {"attr": "other", "set_vectors": True})
    doc = nlp(TEXT)
    read_elmo(copy := written(doc))
    np.testing.assert_array_equal(copy[5].vector, doc[5]._.other)
    read_elmo(copy := written(Doc.from_docs([doc, doc])))
    np.testing.assert_array_equal(copy[5].vector, doc[5]._.other)
    doc._.other = None
    assert not written(doc).has_vector


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.W109.", "ignore::spacy_elmo.errors.LostVectorsWarning")
def test_docs_of_workers(nlp: Language) -> None:
    alone = nlp(TEXT)
    for doc in nlp.pipe([TEXT, TEXT], n_process=2):
        assert doc[5].vector.shape == (0,)
        np.testing.assert_allclose(doc[5]._.elmo, alone[5].vector, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(doc[5].vector, doc[5]._.elmo)
    for doc in restore_vectors(nlp.pipe([TEXT, TEXT], n_process=2)):
        np.testing.assert_allclose(doc[5].vector, alone[5].vector, rtol=0, atol=1e-5)


def test_a_worker_warns(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiprocessing.parent_process", lambda: object())
    with pytest.warns(LostVectorsWarning, match=r"restore_vectors\(nlp.pipe\(...\)\)"):
        list(nlp.pipe([TEXT]))
    list(pipeline().pipe([TEXT]))  # nothing is lost without set_vectors


def test_restoring_what_is_not_there(nlp: Language) -> None:
    for doc, attr in ((nlp.make_doc("a"), "elmo"), (nlp("a"), "other")):
        with pytest.raises(NotEmbeddedError, match=f"no ELMo layers under '{attr}'"):
            restore_vectors(doc, attr)


@pytest.mark.parametrize("suffix", [":tokens", ":mix"])
def test_parts_that_were_taken_out_by_hand(nlp: Language, suffix: str) -> None:
    doc = nlp(TEXT)
    del doc.user_data["._.", "elmo" + suffix, 0, None]
    with pytest.raises(NotEmbeddedError):
        _ = doc._.elmo
    assert not hasattr(doc[0]._, "elmo")
