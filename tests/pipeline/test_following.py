"""Docs that were retokenised, cut, joined or copied after the pipe: each token has the vectors of its characters."""

import pickle
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span

from spacy_elmo.errors import NotEmbeddedError

TEXT = "We sat on the river bank . The bank lent money ."


@pytest.fixture(scope="module")
def nlp() -> Language:
    return pipeline(set_vectors=True, scalar_mix_parameters=[0.5, -1.0, 2.0])


def check(doc: Doc, layers: np.ndarray, vectors: np.ndarray | None = None) -> None:
    """The attributes of the doc and all its parts are these layers, and their mix."""
    weights = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    expected = {"elmo_layers": layers, "elmo": np.einsum("l,ltw->tw", weights, layers) if vectors is None else vectors}
    for name, values in expected.items():
        close = {"rtol": 0, "atol": 1e-6}
        if name == "elmo_layers" and vectors is not None:
            continue
        np.testing.assert_allclose(doc._.get(name), values, **close)
        assert doc._.get(name).dtype == np.float32
        for i in range(len(doc)):
            np.testing.assert_allclose(doc[i]._.get(name), values[..., i, :], **close)
        np.testing.assert_allclose(doc[1:-1]._.get(name), values[..., 1:-1, :], **close)
        assert doc[1:1]._.get(name).shape == (*values.shape[:-2], 0, values.shape[-1])


def columns(layers: np.ndarray, parts: Sequence[Sequence[int]]) -> np.ndarray:
    """The layers of tokens that consist of these earlier tokens."""
    return np.stack([np.mean([layers[:, i] for i in part], axis=0) for part in parts], axis=1)


def merge(doc: Doc, *spans: Span, **attrs: Any) -> Doc:
    with doc.retokenize() as retokenizer:
        for span in spans:
            retokenizer.merge(span, **attrs)
    return doc


def test_merged_and_split_tokens(nlp: Language) -> None:
    doc = nlp(TEXT)
    before = doc._.elmo_layers.copy()
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[4:6])
        retokenizer.split(doc[10], ["mo", "ney"], heads=[(doc[10], 1), doc[9]])
    assert len(doc) == 12  # as before
    after = columns(before, [[0], [1], [2], [3], [4, 5], [6], [7], [8], [9], [10], [10], [11]])
    check(doc, after)
    np.testing.assert_allclose(doc[4].vector, doc[4]._.elmo)
    np.testing.assert_allclose(doc.vector, doc._.elmo.mean(0), atol=1e-6)
    assert doc[4].has_vector
    merge(doc, doc[9:11], doc[3:6])  # the mean over the parts, not over the means of parts
    check(doc, columns(before, [[0], [1], [2], [3, 4, 5, 6], [7], [8], [9], [10], [11]]))
    check(merge(doc, doc[:]), columns(before, [range(12)]))
    assert nlp(doc)._.elmo.shape == (1, 32)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["river", " ban", "k"], [[4], [5], [5]]),
        (["ri", "ver ", "bank"], [[4], [4], [5]]),
        (["r", "iver b", "ank"], [[4], [4, 5], [5]]),
        (["river", " ", "bank"], [[4], [], [5]]),
    ],
)
def test_tokens_that_are_split_beside_a_blank(words: list[str], parts: list[list[int]], nlp: Language) -> None:
    doc = nlp(TEXT)
    before = doc._.elmo_layers.copy()
    merge(doc, doc[4:6])
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[4], words, heads=[(doc[4], i) for i in range(len(words))])
    blank = np.zeros_like(before[:, 0])
    middle = [np.mean([before[:, i] for i in part], axis=0) if part else blank for part in parts]
    expected = [*(before[:, i] for i in range(4)), *middle, *(before[:, i] for i in range(6, 12))]
    check(doc, np.stack(expected, 1))
    other = nlp("Another one .")
    check(Doc.from_docs([other, doc]), np.concatenate([other._.elmo_layers, np.stack(expected, 1)], 1))
    check(doc[3:8].as_doc(copy_user_data=True), np.stack(expected, 1)[:, 3:8])


def test_merge_entities_and_token_splitter_after_elmo() -> None:
    nlp = pipeline()
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "river bank"}])  # type: ignore[attr-defined]
    nlp.add_pipe("merge_entities")
    nlp.add_pipe("token_splitter", config={"min_length": 6, "split_length": 3})
    doc, plain = nlp(TEXT), pipeline()(TEXT)._.elmo
    assert [token.text for token in doc[4:8]] == ["riv", "er ", "ban", "k"]
    np.testing.assert_allclose(doc._.elmo[4:8], plain[[4, 4, 5, 5]], rtol=0, atol=1e-6)


@pytest.mark.parametrize("store", ["layers_float16", "mix"])
def test_merged_tokens_of_what_else_is_stored(store: str) -> None:
    doc = pipeline(store=store)(TEXT)
    before = doc._.elmo.copy()
    expected = np.concatenate([before[:4], before[4:6].mean(0, keepdims=True), before[6:]])
    np.testing.assert_allclose(merge(doc, doc[4:6])._.elmo, expected, rtol=0, atol=1e-6)


def test_merge_entities_after_elmo() -> None:
    nlp = pipeline()
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "river bank"}])  # type: ignore[attr-defined]
    nlp.add_pipe("merge_entities")
    plain = pipeline()(TEXT)._.elmo
    for doc in (nlp(TEXT), *nlp.pipe([TEXT])):
        assert doc[4].text == "river bank"
        np.testing.assert_allclose(doc[4]._.elmo, plain[4:6].mean(0), rtol=0, atol=1e-6)
        np.testing.assert_allclose(doc[5]._.elmo, plain[6], rtol=0, atol=1e-6)


def test_whitespace_does_not_count(nlp: Language) -> None:
    doc = nlp("the river \n\n bank  ")
    before = doc._.elmo_layers.copy()
    assert [token.is_space for token in doc] == [False, False, True, False, True]
    check(merge(doc, doc[1:4]), np.stack([before[:, 0], (before[:, 1] + before[:, 3]) / 2, before[:, 4]], 1))
    doc = nlp("a \n\n b")
    doc = merge(doc, doc[1:2])
    assert not doc[1]._.elmo.any()


def test_cut_docs(nlp: Language) -> None:
    doc = nlp(TEXT)
    layers = doc._.elmo_layers
    cut = doc[7:12].as_doc(copy_user_data=True)
    check(cut, layers[:, 7:12])
    check(cut[1:4].as_doc(copy_user_data=True), layers[:, 8:11])
    check(merge(cut, cut[1:3]), columns(layers, [[7], [8, 9], [10], [11]]))
    check(merge(doc, doc[4:6])[3:6].as_doc(copy_user_data=True), columns(layers, [[3], [4, 5], [6]]))
    with pytest.raises(NotEmbeddedError, match="copy_user_data=True"):
        _ = doc[2:5].as_doc()._.elmo


def test_joined_docs_without_a_warning(nlp: Language) -> None:
    a, b = nlp(TEXT), nlp("Another one")
    expected = [b._.elmo_layers, a._.elmo_layers, b._.elmo_layers, a._.elmo_layers]
    docs = [b, nlp.make_doc(""), nlp(""), a, b, a[:].as_doc(copy_user_data=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined = Doc.from_docs(docs)
        check(joined, np.concatenate(expected, 1))
        check(Doc.from_docs(docs, ensure_whitespace=False), np.concatenate(expected, 1))
        check(Doc.from_docs([joined, b]), np.concatenate([*expected, b._.elmo_layers], 1))
        check(joined[2:14].as_doc(copy_user_data=True), a._.elmo_layers)
    joined._.elmo = None
    assert not joined.user_data


def test_joined_with_a_doc_that_has_none(nlp: Language) -> None:
    a, b = nlp(TEXT), nlp.make_doc("Another one .")
    joined = Doc.from_docs([b, a])
    np.testing.assert_array_equal(joined[3:]._.elmo, a._.elmo)
    for part in (joined, joined[0], joined[2:4]):
        with pytest.raises(NotEmbeddedError, match="joined with one that has none"):
            _ = part._.elmo


def test_joined_with_other_stores(nlp: Language) -> None:
    a, b = nlp(TEXT), pipeline(store="mix", scalar_mix_parameters=[0.5, -1.0, 2.0])("Another one .")
    b = Doc(nlp.vocab).from_bytes(b.to_bytes())
    joined = Doc.from_docs([a, b])
    check(joined, a._.elmo_layers, np.concatenate([a._.elmo, b._.elmo]))
    with pytest.raises(NotEmbeddedError, match='store = "mix"'):
        _ = joined._.elmo_layers


def test_copies_and_written_docs(nlp: Language) -> None:
    doc = nlp(TEXT)
    expected = columns(doc._.elmo_layers, [[0], [1], [2], [3], [4, 5], *([i] for i in range(6, 12))])
    merge(doc, doc[4:6])
    stranger = spacy_vocab()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # W109: spaCy says that hooks are not kept
        docbin = DocBin(docs=[doc], store_user_data=True).to_bytes()
        read = [Doc(stranger).from_bytes(doc.to_bytes()), *DocBin().from_bytes(docbin).get_docs(stranger)]
    for other in (doc, doc.copy(), pickle.loads(pickle.dumps(doc)), *read):
        check(other, expected)


def spacy_vocab() -> Any:
    """A vocabulary that has seen none of the words."""
    return pipeline().vocab


def test_another_text_is_refused(nlp: Language) -> None:
    doc, other = nlp("river bank"), nlp.make_doc("rover bank")
    other.user_data = doc.user_data
    assert (other[1]._.elmo == doc[1]._.elmo).all()
    for part in (other, other[0], merge(other, other[:])):
        with pytest.raises(NotEmbeddedError, match="its text is another"):
            _ = part._.elmo


def test_docs_that_version_0_1_0_wrote(nlp: Language) -> None:
    doc, old = nlp(TEXT), nlp.make_doc(TEXT)
    for (kind, name, _, end), value in doc.user_data.items():
        old.user_data[kind, name, None, end] = value[:, :2] if name == "elmo:tokens" else value  # type: ignore[index]
    check(old, doc._.elmo_layers)
    old._.elmo_layers = None
    assert not old.user_data


def test_a_component_listens_to_retokenised_docs(nlp: Language) -> None:
    pipe = nlp.get_pipe("elmo")
    doc = nlp(TEXT)
    before = doc._.elmo_layers.copy()
    merge(doc, doc[4:6])
    read = pipe.source.docs.read(doc)  # type: ignore[attr-defined]
    np.testing.assert_allclose(read[:, 4], before[:, 4:6].mean(1), rtol=0, atol=1e-6)
