"""The values on a doc: what is stored, and what is read from it."""

import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from golden_files import read_golden
from pipelines import GOLDEN, pipeline, shared
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, Token
from spacy.vocab import Vocab

from spacy_elmo import encode, restore_vectors, tfhub_outputs
from spacy_elmo.errors import ElmoError, NotEmbeddedError, SettingsError
from spacy_elmo.models.doc_layers import (
    annotate,
    has_values,
    is_not_stored,
    layers_of,
    mean_vector,
    mix_parameters,
    vectors_of,
)
from spacy_elmo.pipeline.attributes import register

WEIGHTS = np.array([0.5, 0.25, 0.25], np.float32)
STORES = ["layers", "layers_float16", "mix"]


def new_doc() -> Doc:
    return Doc(shared().vocab, words=["the", " ", "river", "bank"])


def drawn(seed: int) -> np.ndarray:
    """Layers of `new_doc`, which float16 holds exactly; zeros at the whitespace."""
    layers = np.random.default_rng(seed).integers(-8, 9, (3, 4, 5)).astype(np.float32)
    layers[:, 1] = 0
    return layers


@pytest.mark.parametrize("weights", [[0.5, -1.0, 2.0], [1000.0, 999.0, -1000.0], [-1e10, -1e10, 0.0]])
@pytest.mark.parametrize("store", STORES)
def test_any_finite_weights_of_layers(weights: list[float], store: str) -> None:
    shares = [1 / sum(np.exp(np.clip(other - own, None, 700.0)) for other in weights) for own in weights]
    doc = new_doc()
    with np.errstate(all="raise"):
        got = mix_parameters(weights)
        annotate(doc, "elmo", 1e-3 * drawn(0), got, store)
        vectors = vectors_of(doc, attr="elmo")
    np.testing.assert_allclose(vectors, 1e-3 * np.tensordot(shares, drawn(0), 1), atol=1e-5)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, shares, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("store", STORES)
def test_values_of_docs_and_spans(store: str) -> None:
    doc, layers = new_doc(), drawn(0)
    annotate(doc, "elmo", layers, WEIGHTS, store)
    vectors = 0.5 * layers[0] + 0.25 * layers[1] + 0.25 * layers[2]
    np.testing.assert_array_equal(vectors_of(doc, attr="elmo"), vectors)
    np.testing.assert_array_equal(vectors_of(doc[1:3], attr="elmo"), vectors[1:3])
    np.testing.assert_allclose(mean_vector(doc, attr="elmo"), vectors[[0, 2, 3]].mean(0), rtol=1e-6)
    np.testing.assert_allclose(mean_vector(doc[1:3], attr="elmo"), vectors[2], rtol=1e-6)
    assert not mean_vector(doc[1:2], attr="elmo").any()
    if store != "mix":
        assert layers_of(doc, attr="elmo").dtype == np.float32
        np.testing.assert_array_equal(layers_of(doc[2:], attr="elmo"), layers[:, 2:])


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("change", ["none", "from_bytes", "merge"])
def test_arrays_are_the_readers_own(store: str, change: str) -> None:
    nlp = pipeline(store=store, set_vectors=True)
    doc = nlp("We sat by the river .")
    if change == "from_bytes":
        doc = restore_vectors(written(doc)[0])
    if change == "merge":
        merge(doc, doc[3:5])
    reads: dict[str, Callable[[], Any]] = {"encode": lambda: encode(nlp, [doc, doc])} if change == "none" else {}
    names = ["elmo"] if store == "mix" else ["elmo", "elmo_layers"]
    for part in (doc, doc[1:4], doc[1:1], doc[3]):
        reads |= {f"{part!r} {name}": partial(part._.get, name) for name in names}
        reads |= {f"{part!r} vector": partial(getattr, part, "vector")}
    if store != "mix":
        reads |= {name: lambda name=name: tfhub_outputs(doc)[name] for name in tfhub_outputs(doc)}
    before = {name: read().copy() for name, read in reads.items()}
    for read in reads.values():
        array = read()
        torch.from_numpy(array)  # it warns of arrays that can't be written to
        array += 1
        for name, values in before.items():
            np.testing.assert_array_equal(reads[name](), values)


@pytest.mark.parametrize("before", [*STORES, "none"])
@pytest.mark.parametrize("after", STORES)
def test_nothing_of_an_earlier_run_is_left(before: str, after: str) -> None:
    doc, layers = new_doc(), drawn(1)
    annotate(doc, "elmo", drawn(0), WEIGHTS, before)
    annotate(doc, "elmo", layers, WEIGHTS, after)
    np.testing.assert_array_equal(vectors_of(doc, attr="elmo"), np.tensordot(WEIGHTS, layers, 1))
    assert not is_not_stored(doc, "elmo")
    annotate(doc, "elmo", layers, WEIGHTS, "none")
    assert is_not_stored(doc, "elmo")
    assert not has_values(doc, attr="elmo")


TEXT = "We sat on the river bank . The bank lent money ."


@pytest.fixture
def nlp() -> Language:
    return shared(None, set_vectors=True)


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
    assert doc._.elmo.shape == (12, 512)


@pytest.mark.parametrize("store", STORES)
def test_doc_cleaner(store: str) -> None:
    nlp = pipeline(store=store)
    nlp.add_pipe("doc_cleaner", config={"attrs": {"_.elmo": None}})
    assert not nlp(TEXT).user_data


def written(doc: Doc, vocab: Vocab | None = None) -> list[Doc]:
    """The doc from its bytes and from a DocBin, without hooks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # W109: spaCy says that hooks are not kept
        vocab = vocab or doc.vocab
        docbin = DocBin(docs=[doc], store_user_data=True).to_bytes()
        return [Doc(vocab).from_bytes(doc.to_bytes()), *DocBin().from_bytes(docbin).get_docs(vocab)]


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_written_docs_get_their_vectors_back(store: str) -> None:
    doc = pipeline(None, set_vectors=True, store=store)(TEXT)
    for copy in written(doc):
        np.testing.assert_array_equal(copy[5]._.elmo, doc[5]._.elmo)
        with pytest.raises(SettingsError, match=r"restore_vectors\(doc\)"):
            doc[5].similarity(copy[5])
        assert not copy.has_vector  # reading and comparing change no doc
        assert restore_vectors(copy) is copy
        for part, other in ((copy, doc), (copy[5], doc[5]), (copy[3:6], doc[3:6])):
            assert part.has_vector
            np.testing.assert_array_equal(part.vector, other.vector)
            assert part.vector_norm == pytest.approx(other.vector_norm)
            assert part.similarity(doc[8]) == pytest.approx(other.similarity(doc[8]))
        assert copy[5].similarity(copy[8]) < 0.99  # two banks
    for copy in (doc.copy(), pickle.loads(pickle.dumps(doc))):  # these keep hooks
        assert copy[5].similarity(doc[8]) == pytest.approx(doc[5].similarity(doc[8]))


def test_restoring_a_stream_from_processes(nlp: Language) -> None:
    stream = nlp.pipe([TEXT, TEXT], n_process=2, batch_size=1)
    with warnings.catch_warnings():  # W109, in the workers
        warnings.simplefilter("ignore")
        assert [doc[5].similarity(doc[8]) < 0.99 for doc in restore_vectors(stream)] == [True, True]  # two banks


def test_restoring_what_is_not_there(nlp: Language) -> None:
    for doc, attr in ((nlp.make_doc("a"), "elmo"), (nlp("a"), "other")):
        with pytest.raises(NotEmbeddedError, match=f"no ELMo layers under '{attr}'"):
            restore_vectors(doc, attr)
    with pytest.raises(SettingsError, match=r"was given \(.*Expected a Doc, or a stream of docs"):
        list(restore_vectors(nlp.pipe([(TEXT, 1)], as_tuples=True)))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def nlp_following() -> Language:
    return pipeline(set_vectors=True, scalar_mix_parameters=[0.5, -1.0, 2.0])


def check(doc: Doc, layers: np.ndarray) -> None:
    """The attributes of the doc and all its parts are these layers, and their mix."""
    weights = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    for name, values in {"elmo_layers": layers, "elmo": np.einsum("l,ltw->tw", weights, layers)}.items():
        close = {"rtol": 0, "atol": 1e-6}
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


def test_merged_and_split_tokens(nlp_following: Language) -> None:
    doc = nlp_following(TEXT)
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
    assert nlp_following(doc)._.elmo.shape == (1, 32)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["river", " ban", "k"], [[4], [5], [5]]),
        (["ri", "ver ", "bank"], [[4], [4], [5]]),
        (["r", "iver b", "ank"], [[4], [4, 5], [5]]),
        (["river", " ", "bank"], [[4], [], [5]]),
    ],
)
def test_tokens_that_are_split_beside_a_blank(
    words: list[str], parts: list[list[int]], nlp_following: Language
) -> None:
    doc = nlp_following(TEXT)
    before = doc._.elmo_layers.copy()
    merge(doc, doc[4:6])
    with doc.retokenize() as retokenizer:
        retokenizer.split(doc[4], words, heads=[(doc[4], i) for i in range(len(words))])
    blank = np.zeros_like(before[:, 0])
    middle = [np.mean([before[:, i] for i in part], axis=0) if part else blank for part in parts]
    expected = [*(before[:, i] for i in range(4)), *middle, *(before[:, i] for i in range(6, 12))]
    check(doc, np.stack(expected, 1))
    other = nlp_following("Another one .")
    check(Doc.from_docs([other, doc]), np.concatenate([other._.elmo_layers, np.stack(expected, 1)], 1))
    check(doc[3:8].as_doc(copy_user_data=True), np.stack(expected, 1)[:, 3:8])


@pytest.mark.parametrize("store", ["layers_float16", "mix"])
def test_merged_tokens_of_what_else_is_stored(store: str) -> None:
    doc = shared(store=store)(TEXT)
    before = doc._.elmo.copy()
    expected = np.concatenate([before[:4], before[4:6].mean(0, keepdims=True), before[6:]])
    np.testing.assert_allclose(merge(doc, doc[4:6])._.elmo, expected, rtol=0, atol=1e-6)


def test_whitespace_does_not_count(nlp_following: Language) -> None:
    doc = nlp_following("the river \n\n bank  ")
    before = doc._.elmo_layers.copy()
    assert [token.is_space for token in doc] == [False, False, True, False, True]
    check(merge(doc, doc[1:4]), np.stack([before[:, 0], (before[:, 1] + before[:, 3]) / 2, before[:, 4]], 1))
    doc = nlp_following("a \n\n b")
    doc = merge(doc, doc[1:2])
    assert not doc[1]._.elmo.any()


def test_cut_docs(nlp_following: Language) -> None:
    doc = nlp_following(TEXT)
    layers = doc._.elmo_layers
    cut = doc[7:12].as_doc(copy_user_data=True)
    check(cut, layers[:, 7:12])
    check(cut[1:4].as_doc(copy_user_data=True), layers[:, 8:11])
    check(merge(cut, cut[1:3]), columns(layers, [[7], [8, 9], [10], [11]]))
    check(merge(doc, doc[4:6])[3:6].as_doc(copy_user_data=True), columns(layers, [[3], [4, 5], [6]]))
    with pytest.raises(NotEmbeddedError, match="copy_user_data=True"):
        _ = doc[2:5].as_doc()._.elmo


def test_joined_docs_without_a_warning(nlp_following: Language) -> None:
    a, b = nlp_following(TEXT), nlp_following("Another one")
    expected = [b._.elmo_layers, a._.elmo_layers, b._.elmo_layers, a._.elmo_layers]
    docs = [b, nlp_following.make_doc(""), nlp_following(""), a, b, a[:].as_doc(copy_user_data=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined = Doc.from_docs(docs)
        check(joined, np.concatenate(expected, 1))
        check(Doc.from_docs(docs, ensure_whitespace=False), np.concatenate(expected, 1))
        check(Doc.from_docs([joined, b]), np.concatenate([*expected, b._.elmo_layers], 1))
        check(joined[2:14].as_doc(copy_user_data=True), a._.elmo_layers)
    joined._.elmo = None
    assert not joined.user_data


def test_joined_with_a_doc_that_has_none(nlp_following: Language) -> None:
    a, b = nlp_following(TEXT), nlp_following.make_doc("Another one .")
    joined = Doc.from_docs([b, a])
    np.testing.assert_array_equal(joined[3:]._.elmo, a._.elmo)
    for part in (joined, joined[0], joined[2:4]):
        with pytest.raises(NotEmbeddedError, match=r"joined with one that has none.*Run the pipe on it again"):
            _ = part._.elmo


def test_joined_with_other_stores(nlp_following: Language) -> None:
    a, b = nlp_following(TEXT), pipeline(store="mix", scalar_mix_parameters=[0.5, -1.0, 2.0])("Another one .")
    joined = Doc.from_docs([a, Doc(nlp_following.vocab).from_bytes(b.to_bytes())])
    np.testing.assert_allclose(joined._.elmo, np.concatenate([a._.elmo, b._.elmo]), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(joined[2:12]._.elmo_layers, a._.elmo_layers[:, 2:])
    with pytest.raises(NotEmbeddedError, match='store = "mix"'):
        _ = joined._.elmo_layers


def test_copies_and_written_docs(nlp_following: Language) -> None:
    doc = nlp_following(TEXT)
    expected = columns(doc._.elmo_layers, [[0], [1], [2], [3], [4, 5], *([i] for i in range(6, 12))])
    merge(doc, doc[4:6])
    stranger = spacy.blank("xx").vocab  # it has seen none of the words
    for other in (doc, doc.copy(), pickle.loads(pickle.dumps(doc)), *written(doc, stranger)):
        check(other, expected)


def test_another_text_is_refused(nlp_following: Language) -> None:
    doc, other = nlp_following("river bank"), nlp_following.make_doc("rover bank")
    other.user_data = doc.user_data
    assert (other[1]._.elmo == doc[1]._.elmo).all()
    for part in (other, other[0], merge(other, other[:])):
        with pytest.raises(NotEmbeddedError, match="its text is another"):
            _ = part._.elmo


def test_docs_that_version_0_1_0_wrote(nlp_following: Language) -> None:
    doc, old = nlp_following(TEXT), nlp_following.make_doc(TEXT)
    for (kind, name, _, end), value in doc.user_data.items():
        old.user_data[kind, name, None, end] = value[:, :2] if name == "elmo:tokens" else value  # type: ignore[index]
    check(old, doc._.elmo_layers)
    old._.elmo_layers = None
    assert not old.user_data


def test_vector_and_similarity_of_every_part(nlp: Language) -> None:
    doc, other = nlp("We sat on the river bank ."), nlp("The bank lent money .")
    assert (doc[5].vector == doc[5]._.elmo).all()
    np.testing.assert_allclose(doc[2:6].vector, doc._.elmo[2:6].mean(0), atol=1e-6)
    np.testing.assert_allclose(doc.vector, doc._.elmo.mean(0), atol=1e-6)
    for part in (doc[5], doc[2:6], doc):
        assert part.has_vector
        assert part.vector_norm == pytest.approx(np.linalg.norm(part.vector), rel=1e-5)
    for a, b in ((doc[5], other[1]), (doc[2:6], other[0:2]), (doc, other), (doc[5], other)):
        cosine = float(a.vector @ b.vector / np.linalg.norm(a.vector) / np.linalg.norm(b.vector))
        assert a.similarity(b) == pytest.approx(cosine, abs=1e-5)
    assert doc[5].similarity(other[1]) < 0.99  # spaCy alone would say 1.0: both are "bank"
    assert not shared()("bank").has_vector  # without the setting


def test_whitespace_does_not_count_in_vectors(nlp: Language) -> None:
    spaced, plain = nlp("We sat\n\n on  the bank ."), nlp("We sat on the bank .")
    np.testing.assert_allclose(spaced.vector, plain.vector, rtol=0, atol=1e-5)
    assert spaced[1:4].has_vector
    for blank in (spaced[2], spaced[2:3], nlp(" \n"), nlp("")):
        assert not blank.has_vector
        assert blank.vector.shape == (512,)
        assert not blank.vector.any()
    assert nlp("").similarity(nlp(" \n")) == 0.0


def test_vectors_that_can_not_be_compared(nlp: Language) -> None:
    doc, other = nlp("the bank"), spacy.blank("xx")("the bank")
    for a in (doc, doc[1], doc[0:2]):
        with pytest.raises(SettingsError, match=r"has a vector of width 0. .*restore_vectors\(doc\)"):
            a.similarity(other)
        with pytest.raises(SettingsError, match=r"has a vector of width 0.* a lexeme, nlp\.vocab"):
            a.similarity(nlp.vocab["bank"])


def test_the_five_outputs() -> None:
    golden = read_golden(GOLDEN / "random_a")
    nlp = shared()
    outputs = tfhub_outputs(nlp(Doc(nlp.vocab, words=golden.sentences[0])))
    word_emb = golden.expected["word_emb"][0, : len(golden.sentences[0])]
    _, first, second = layers = golden.expected["zero_state/0"]
    expected = {"word_emb": word_emb, "lstm_outputs1": first, "lstm_outputs2": second}
    expected |= {"elmo": layers.mean(0), "default": layers.mean((0, 1))}
    assert list(outputs) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name], values, rtol=0, atol=1e-5)
    assert list(tfhub_outputs(shared("random_b")("a b")))[1:4] == [f"lstm_outputs{k}" for k in (1, 2, 3)]


def test_whitespace_and_empty_docs() -> None:
    nlp = pipeline(attr="other")
    a, b = (tfhub_outputs(nlp(text), attr="other")["default"] for text in ("a \n b", "a b"))
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
    for text in ("", " "):
        outputs = tfhub_outputs(nlp(text), attr="other")
        assert outputs["word_emb"].shape == (len(text), 16)
        assert outputs["default"].shape == (32,)
        assert not outputs["default"].any()


def test_without_layers() -> None:
    for doc, message in ((shared(store="mix")("a"), "store"), (shared().make_doc("a"), "no elmo pipe")):
        with pytest.raises(NotEmbeddedError, match=message):
            tfhub_outputs(doc)


def test_threads_register_the_same_names() -> None:
    names, barrier, interval = [f"by_threads_{k}" for k in range(100)], threading.Barrier(4), sys.getswitchinterval()

    def register_all(_: int) -> None:
        for name in names:
            barrier.wait(60)
            register(name)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(register_all, range(4)))
    finally:
        sys.setswitchinterval(interval)
    for name, owner in product([*names, *(f"{name}_layers" for name in names)], (Doc, Span, Token)):
        owner.remove_extension(name)
