"""What spaCy's Language offers works with the component in it: processes, threads, tuples, errors, zones."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import spacy
from pipelines import files, pipeline
from spacy.language import Language
from spacy.tokens import Doc

from spacy_elmo import restore_vectors
from spacy_elmo.inference import Engine

TEXTS = [f"We sat on the bank of river {k} ." if k % 3 else f"bank {k}\n" for k in range(40)] + ["", " "]


@pytest.fixture(scope="module")
def nlp() -> Language:
    return pipeline(None, set_vectors=True)


def same(docs: list[Doc], others: list[Doc]) -> None:
    assert [doc.text for doc in docs] == [doc.text for doc in others]
    for doc, other in zip(docs, others):
        np.testing.assert_allclose(doc._.elmo_layers, other._.elmo_layers, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.W109.", "ignore::spacy_elmo.errors.LostVectorsWarning")  # hooks are not sent
def test_processes_also_after_this_one_has_run_the_biLM(nlp: Language) -> None:
    alone = list(nlp.pipe(TEXTS))
    docs = list(nlp.pipe(TEXTS, n_process=2, batch_size=7))
    assert not docs[1].has_vector  # spaCy does not send hooks
    same(docs, alone)
    for doc, other in zip(docs, alone):
        np.testing.assert_allclose(restore_vectors(doc).vector, other.vector, rtol=0, atol=1e-5)
    assert docs[1].similarity(docs[2]) == pytest.approx(alone[1].similarity(alone[2]), abs=1e-4)


def test_processes_with_tuples_and_an_error_handler() -> None:
    nlp = pipeline()
    nlp.add_pipe("fails_on_bad", first=True)
    nlp.set_error_handler(ignore)
    got = list(nlp.pipe([("a", 1), ("bad", 2), ("c d", 3)], as_tuples=True, n_process=2))
    assert [(doc.text, number) for doc, number in got] == [("a", 1), ("c d", 3)]
    assert got[1][0]._.elmo.shape == (2, 32)


def ignore(name: str, pipe: object, docs: list[Doc], error: Exception) -> None:
    pass


@Language.component("fails_on_bad")
def fails_on_bad(doc: Doc) -> Doc:
    if doc.text == "bad":
        raise RuntimeError("no")
    return doc


@pytest.mark.slow
def test_eight_threads_share_a_pipeline() -> None:
    expected = list(pipeline(None).pipe(TEXTS))
    nlp = pipeline(None, model={"cached_words": 10})  # loads, fills and empties its cache while all run
    barrier = threading.Barrier(8)

    def run(k: int) -> list[Doc]:
        barrier.wait()
        turned = TEXTS[k:] + TEXTS[:k]
        docs = list(nlp.pipe(turned, batch_size=k + 1))
        return docs[len(docs) - k :] + docs[: len(docs) - k] if k else docs

    with ThreadPoolExecutor(8) as pool:
        for docs in pool.map(run, range(8)):
            same(docs, expected)


def test_as_tuples_and_select_pipes(nlp: Language) -> None:
    got = list(nlp.pipe([(text, k) for k, text in enumerate(TEXTS)], as_tuples=True))
    assert [k for _, k in got] == list(range(len(TEXTS)))
    same([doc for doc, _ in got], list(nlp.pipe(TEXTS)))
    with nlp.select_pipes(disable="elmo"), pytest.raises(AttributeError, match="no elmo pipe"):
        _ = nlp("a")._.elmo
    assert nlp("a")._.elmo.shape == (1, 256)


def test_one_bad_doc_does_not_lose_its_batch() -> None:
    nlp = pipeline(model={"get_spans": {"@misc": "refuses_bad.v1"}})
    failed: list[str] = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.extend(f"{name} {doc.text} {error}" for doc in docs))
    docs = list(nlp.pipe(["a b c", "bad x", "", "d e f"]))
    assert [doc.text for doc in docs] == ["a b c", "", "d e f"]
    assert failed == ["elmo bad x no"]
    same(docs, list(pipeline().pipe(["a b c", "", "d e f"])))


def test_without_a_handler_errors_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = pipeline()

    def failing(*args: object) -> None:
        raise RuntimeError("out of something")

    monkeypatch.setattr(Engine, "run", failing)
    for use in (lambda: nlp("a b"), lambda: list(nlp.pipe(["a", "b"]))):
        with pytest.raises(RuntimeError, match="out of something"):
            use()


def test_a_doc_that_fails_alone_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp, calls = pipeline(), []

    def failing(self: Engine, sentences: list[list[str]], *rest: object) -> None:
        calls.append(sentences)
        raise RuntimeError("no")

    monkeypatch.setattr(Engine, "run", failing)
    nlp.set_error_handler(ignore)
    assert not list(nlp.pipe(["a b"]))
    assert calls == [[["a", "b"]]]


def test_memory_zone() -> None:
    nlp = pipeline()
    before = nlp("the bank of xyzzy")._.elmo
    for _ in range(3):
        with nlp.memory_zone():
            docs = list(nlp.pipe(["the bank of xyzzy", "a word never seen: plugh"]))
            np.testing.assert_allclose(docs[0]._.elmo, before, rtol=0, atol=1e-5)
            kept = docs[1]._.elmo
    np.testing.assert_allclose(nlp("a word never seen: plugh")._.elmo, kept, rtol=0, atol=1e-5)


def test_analyze_pipes() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo")
    analysis = nlp.analyze_pipes()
    assert analysis["problems"] == {"sentencizer": [], "elmo": []}
    assert "token._.elmo" in analysis["summary"]["elmo"]["assigns"]
    assert set(analysis["attrs"]) >= {
        f"{part}._.elmo{end}" for part in ("doc", "span", "token") for end in ("", "_layers")
    }


@Language.component("reads_elmo", requires=["token._.elmo", "doc._.elmo_layers"])
def reads_elmo(doc: Doc) -> Doc:
    return doc


def test_analyze_pipes_sees_who_needs_elmo() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("reads_elmo")
    assert sorted(nlp.analyze_pipes()["problems"]["reads_elmo"]) == ["doc._.elmo_layers", "token._.elmo"]
    nlp.add_pipe("elmo", first=True)
    analysis = nlp.analyze_pipes()
    assert analysis["problems"]["reads_elmo"] == []
    assert analysis["attrs"]["token._.elmo"] == {"assigns": ["elmo"], "requires": ["reads_elmo"]}


@pytest.mark.slow
def test_two_biLMs_in_one_pipeline() -> None:
    nlp = pipeline("random_a", set_vectors=True)
    nlp.add_pipe("elmo", name="second", config=files("random_b") | {"attr": "other", "store": "mix"})
    text = "the river bank"
    for doc in (nlp(text), *nlp.pipe([text] * 2)):
        np.testing.assert_allclose(doc._.elmo_layers, pipeline("random_a")(text)._.elmo_layers, rtol=0, atol=1e-5)
        np.testing.assert_allclose(doc._.other, pipeline("random_b")(text)._.elmo, rtol=0, atol=1e-5)
        assert (doc[1].vector == doc[1]._.elmo).all()
        assert doc._.other[1].shape == (64,)
        restore_vectors(doc, attr="other")
        assert (doc[1].vector == doc[1]._.other).all()
