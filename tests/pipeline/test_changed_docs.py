"""Docs whose vectors were removed, or that were written and read after the pipe."""

import pickle
import warnings

import numpy as np
import pytest
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc, DocBin

from spacy_elmo import restore_vectors
from spacy_elmo.errors import ElmoError, NotEmbeddedError

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
