import numpy as np
import pytest
import spacy
from spacy.language import Language

from spacy_elmo.errors import SettingsError


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"set_vectors": True})
    return nlp


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_vector_and_similarity_of_every_part(nlp: Language) -> None:
    doc, other = nlp("We sat on the river bank ."), nlp("The bank lent money .")
    assert doc.has_vector
    assert doc[5].has_vector
    assert doc[2:6].has_vector
    assert (doc[5].vector == doc[5]._.elmo).all()
    np.testing.assert_allclose(doc[2:6].vector, doc._.elmo[2:6].mean(0), atol=1e-6)
    np.testing.assert_allclose(doc.vector, doc._.elmo.mean(0), atol=1e-6)
    for part in (doc[5], doc[2:6], doc):
        assert part.vector_norm == pytest.approx(np.linalg.norm(part.vector), rel=1e-5)
    for a, b in ((doc[5], other[1]), (doc[2:6], other[0:2]), (doc, other), (doc[5], other)):
        assert a.similarity(b) == pytest.approx(cosine(a.vector, b.vector), abs=1e-5)
    assert doc[5].similarity(other[1]) < 0.99  # spaCy alone would say 1.0: both are "bank"
    assert doc[5].similarity(doc[5]) == pytest.approx(1.0)


def test_empty_docs_and_whitespace(nlp: Language) -> None:
    empty, blank = nlp(""), nlp("\n")
    assert empty.vector.shape == (256,)
    assert not empty.vector.any()
    assert empty.similarity(blank) == 0.0


def test_without_the_setting_vectors_stay_spacys() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    assert not nlp("bank").has_vector


def test_whitespace_does_not_count(nlp: Language) -> None:
    spaced, plain = nlp("We sat\n\n on  the bank ."), nlp("We sat on the bank .")
    np.testing.assert_allclose(spaced.vector, plain.vector, rtol=0, atol=1e-5)
    blank = spaced[2]
    assert blank.is_space
    assert not blank.has_vector
    assert not blank.vector.any()
    assert not spaced[2:3].has_vector
    assert spaced[1:4].has_vector
    assert not nlp(" \n").has_vector


def test_vectors_that_can_not_be_compared(nlp: Language) -> None:
    doc, other = nlp("the bank"), spacy.blank("en")("the bank")
    for a in (doc, doc[1], doc[0:2]):
        with pytest.raises(SettingsError, match=r"has a vector of width 0: .*restore_vectors\(doc\)"):
            a.similarity(other)
        with pytest.raises(SettingsError, match=r"has a vector of width 0.* a lexeme, nlp\.vocab"):
            a.similarity(nlp.vocab["bank"])


def test_has_vector_after_retokenising(nlp: Language) -> None:
    doc = nlp("the river bank")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    assert doc.has_vector
    assert doc[1].has_vector
    doc._.elmo = None
    assert not doc.has_vector
    assert not doc[1].has_vector
