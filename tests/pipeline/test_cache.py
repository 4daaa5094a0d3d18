"""While a biLM is frozen, what it reads in training is read once."""

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from tasks import train, with_tasks

from spacy_elmo import kernels
from spacy_elmo.errors import CacheError
from spacy_elmo.inference import Engine, linear


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The sentences that the biLM reads."""
    sentences: list[list[str]] = []
    for name in ("run", "run_from"):
        run = getattr(Engine, name)

        def counted(self: Engine, batch: Any, *args: Any, run: Any = run) -> Any:
            sentences.extend(list(sentence) for sentence in batch)
            return run(self, batch, *args)

        monkeypatch.setattr(Engine, name, counted)
    return sentences


def pipe_of(**config: Any) -> tuple[Language, Any]:
    nlp = pipeline(**config)
    return nlp, nlp.get_pipe("elmo")


def update(nlp: Any, pipe: Any, texts: list[str]) -> list[Any]:
    """Layers of the docs that an update annotates."""
    docs = [nlp.make_doc(text) for text in texts]
    pipe.update([Example(doc, doc.copy()) for doc in docs])
    return [doc._.elmo_layers for doc in docs]


TEXTS = ["The bank of the river", "Ham is  bad", "The bank of the river", "One more"]


def test_each_sentence_is_read_once(read: list[list[str]]) -> None:
    nlp, pipe = pipe_of()
    list(nlp.pipe(TEXTS))
    assert len(pipe.cache) == 0  # a pipeline that is not trained keeps nothing
    read.clear()
    first = update(nlp, pipe, TEXTS)
    assert len(read) == 3  # one of them stands there twice
    again = update(nlp, pipe, [*reversed(TEXTS), "New words"])
    assert read[3:] == [["New", "words"]]
    for a, b in zip(first, reversed(again[:4])):
        np.testing.assert_array_equal(a, b)
    assert not first[1][:, 2].any()  # whitespace
    list(nlp.pipe(TEXTS))  # an evaluation
    assert len(read) == 4


def test_as_without_a_cache(read: list[list[str]]) -> None:
    nlp, pipe = pipe_of()
    update(nlp, pipe, TEXTS[:2])
    cached = update(nlp, pipe, TEXTS)
    plain_nlp, plain = pipe_of(cache_mb=0)
    read.clear()
    for _ in range(2):
        for a, b in zip(cached, update(plain_nlp, plain, TEXTS)):
            np.testing.assert_allclose(a, b, atol=1e-5)
    assert len(read) == 2 * 3


def test_a_later_run_reuses_the_file(tmp_path: Path, read: list[list[str]]) -> None:
    file = str(tmp_path / "layers.cache")
    nlp, pipe = pipe_of(cache_file=file, cache_mb=0)
    first = update(nlp, pipe, TEXTS)
    assert len(read) == 3
    for model in ({}, {"cached_words": 0, "get_spans": {"@span_getters": "spacy-elmo.whole_doc.v1"}}):
        later_nlp, later = pipe_of(cache_file=file, model=model)
        for a, b in zip(first, update(later_nlp, later, TEXTS)):
            np.testing.assert_array_equal(a, b)
    assert len(read) == 3


@pytest.mark.slow
def test_another_bilm_or_precision_or_state_reads_anew(
    tmp_path: Path, read: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "layers.cache")
    update(*pipe_of(cache_file=file), TEXTS[:1])
    other = spacy.blank("xx")
    embedded = other.add_pipe("elmo", config={"cache_file": file})
    assert update(other, embedded, TEXTS[:1])[0].shape[2] == 512
    assert len(read) == 2
    monkeypatch.setattr(kernels, "loops_state", lambda: kernels.State(False, "", ()))
    for has_bfloat16, expected in ((False, 2), (True, 3)):  # "auto" is float32 then, which is known
        monkeypatch.setattr(linear, "has_bfloat16", lambda device, has=has_bfloat16: has)
        update(*pipe_of(cache_file=file, model={"precision": "auto"}), TEXTS[:1])
        assert len(read) == expected
    update(*pipe_of(cache_file=file, model={"stateful": True}), ["A first sentence"])
    assert len(read) == 4


def two_sentences(nlp: Any, first: str, second: str) -> Doc:
    words = [*first.split(), *second.split()]
    starts = [i in (0, len(first.split())) for i in range(len(words))]
    return Doc(nlp.vocab, words=words, sent_starts=starts)


def test_stateful_depends_on_what_came_before(read: list[list[str]]) -> None:
    nlp, pipe = pipe_of(model={"stateful": True})
    plain_nlp, plain = pipe_of(model={"stateful": True}, cache_mb=0)
    pairs = [("I swim", "The bank"), ("I pay", "The bank"), ("I swim", "The bank"), ("I swim", "A shore")]
    for pair in pairs:
        doc, other = two_sentences(nlp, *pair), two_sentences(plain_nlp, *pair)
        pipe.update([Example(doc, doc.copy())])
        plain.update([Example(other, other.copy())])
        np.testing.assert_allclose(doc._.elmo_layers, other._.elmo_layers, atol=1e-5)
    doc = two_sentences(nlp, *pairs[0])
    read.clear()
    pipe.update([Example(doc, doc.copy())])
    assert read == []


@pytest.mark.slow
def test_same_seed_and_cache_agree_in_every_bit(tmp_path: Path) -> None:
    def parameters(**elmo: Any) -> list[bytes]:
        spacy.util.fix_random_seed(1)
        nlp = with_tasks("tagger", "ner", **elmo)
        train(nlp, 8, drop=0.2)
        nodes: list[Any] = [node for name in ("tagger", "ner") for node in nlp.get_pipe(name).model.walk()]
        return [node.get_param(name).tobytes() for node in nodes for name in node.param_names if node.has_param(name)]

    file = str(tmp_path / "layers.cache")
    assert parameters(cache_file=file) == parameters(cache_file=file)
    assert parameters() == parameters()


def test_a_bad_file_is_told_before_training(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match=r"https://example\.org/x"):
        pipe_of(cache_file="https://example.org/x")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"no database" * 100)
    nlp, pipe = pipe_of(cache_file=str(garbage))
    with pytest.raises(CacheError, match="garbage"):
        pipe.initialize(lambda: [], nlp=nlp)
    assert garbage.read_bytes() == b"no database" * 100


def test_a_closed_cache_is_empty_and_memory_goes_with_the_pipe(tmp_path: Path, read: list[list[str]]) -> None:
    nlp, pipe = pipe_of(cache_file=str(tmp_path / "layers"))
    update(nlp, pipe, TEXTS)
    assert [found.name for found in tmp_path.iterdir()] == ["layers"]  # no -journal, -wal or -shm
    pipe.cache.close()
    nlp(TEXTS[0])
    assert len(pipe.cache) == 0
    assert read[3:] == [TEXTS[0].split()]  # a closed cache reads no file either
    update(nlp, pipe, TEXTS)  # opens it again
    cache = weakref.ref(pipe.cache)
    del nlp, pipe
    gc.collect()
    assert cache() is None
