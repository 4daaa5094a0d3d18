"""The component on text."""

import re
import shutil
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from golden_files import GOLDEN_NAMES, read_golden
from pipelines import GOLDEN, files, from_config, pipeline, shared
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loggers import console_logger
from tasks import elmo_block, with_tasks
from thinc.api import ConfigValidationError, Model, NumpyOps, Ops, get_ops, use_ops
from thinc.util import has_cupy_gpu

from spacy_elmo import restore_vectors
from spacy_elmo.errors import ElmoError, NotEmbeddedError, OtherLanguageWarning, SettingsError
from spacy_elmo.inference import Engine
from spacy_elmo.inference.words import WordEncoder
from spacy_elmo.pipeline.elmo import TRIM_EVERY, ElmoPipe

TEXTS = [
    "Stick to the river bank .",
    "",
    " \n ",
    "one",
    "x" * 10_000 + " y",
    "naïve 東京 👩‍👩‍👧 \u200b ok",
    "a  b\n\nc",
]


@pytest.fixture
def nlp() -> Language:
    return shared(None)


@pytest.mark.filterwarnings("ignore::spacy_elmo.errors.TruncatedWordsWarning")
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_official_files_give_allennlps_vectors(name: str) -> None:
    nlp = shared(name)
    golden = read_golden(GOLDEN / name)
    # a Doc takes no empty words, and whitespace is not shown to the biLM
    chosen = [i for i, words in enumerate(golden.sentences) if all(word.strip() for word in words)]
    assert len(chosen) > 3
    docs = [Doc(nlp.vocab, words=golden.sentences[i]) for i in chosen]
    for i, doc in zip(chosen, nlp.pipe(docs)):
        expected = golden.expected[f"zero_state/{i}"]
        np.testing.assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(doc._.elmo, expected.mean(0), rtol=0, atol=1e-5)


def test_works_at_once_and_after_initialize() -> None:
    other = pipeline()
    other.initialize()
    assert (other("Stick to the river bank .")._.elmo == shared()("Stick to the river bank .")._.elmo).all()


@pytest.mark.filterwarnings("ignore::spacy_elmo.errors.TruncatedWordsWarning")
def test_any_text_in_any_company(nlp: Language) -> None:
    together = list(nlp.pipe(TEXTS))
    assert [doc.text for doc in together] == TEXTS
    for text, doc in zip(TEXTS, together):
        alone = nlp(text)
        assert doc._.elmo_layers.shape == (3, len(doc), 512)
        np.testing.assert_allclose(doc._.elmo_layers, alone._.elmo_layers, rtol=0, atol=1e-5)
        assert (nlp(text)._.elmo_layers == alone._.elmo_layers).all()
        for token in doc:
            assert bool(doc._.elmo_layers[:, token.i].any()) != token.is_space


def test_sentences_are_read_alone(nlp: Language) -> None:
    words = ["It", "rains", ".", "The", "bank", "closes", "."]
    whole = Doc(nlp.vocab, words=words, sent_starts=[i in (0, 3) for i in range(7)])
    parts = [Doc(nlp.vocab, words=words[:3]), Doc(nlp.vocab, words=words[3:])]
    nlp(whole)
    vectors = np.concatenate([nlp(part)._.elmo for part in parts])
    np.testing.assert_allclose(whole._.elmo, vectors, rtol=0, atol=1e-5)


def test_sentences_of_many_docs_run_together_under_the_token_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config=files("random_a") | {"max_batch_tokens": 20})
    seen: list[list[int]] = []
    run = Engine.run
    monkeypatch.setattr(Engine, "run", lambda self, s, *a: (seen.append([len(w) for w in s]), run(self, s, *a))[1])
    texts = ["a b c .", "a", "a b c d e f .", "a b", *["a b c"] * 9, "a b c d e f g h i . " * 9, " ".join("a" * 30)]
    docs = list(nlp.pipe(texts))
    assert [doc.text for doc in docs] == texts
    assert all(sum(batch) <= 20 or len(batch) == 1 for batch in seen)
    assert all(batch == sorted(batch, reverse=True) for batch in seen)
    assert sum(sum(batch) for batch in seen) == sum(len(doc) for doc in docs)
    assert seen[0] == [7, 4, 3, 3, 2, 1]  # of six docs, longest first
    assert len(seen) < 14


@pytest.mark.parametrize(("cached_words", "again"), [(0, 4), (100, 1)])
def test_each_distinct_word_is_encoded_once(monkeypatch: pytest.MonkeyPatch, cached_words: int, again: int) -> None:
    nlp, encoded = pipeline(model={"cached_words": cached_words}), []
    encode = WordEncoder.__call__
    monkeypatch.setattr(WordEncoder, "__call__", lambda self, ids: (encoded.append(len(ids)), encode(self, ids))[1])
    for texts in (["the bank of the river", "the bank", "of the the the"], ["of the river", "rivers"]):
        list(nlp.pipe(texts))
    assert encoded == [2, 4, again]  # <S>, </S>; the, bank, of, river; without a cache all words of the second call


def test_endless_streams_flow() -> None:
    endless = shared().pipe(f"text number {i}" for i in count())
    assert [next(endless)._.elmo.shape for _ in range(3)] == [(3, 32)] * 3


def test_values_that_float16_does_not_hold(nlp: Language) -> None:
    model: Model = Model("large", lambda model, docs, is_train: ([np.full((3, 1, 4), 1e5, "f")], lambda d: []))
    pipe, doc = ElmoPipe(nlp.vocab, model, attr="other", store="layers_float16"), nlp.make_doc("a")
    with pytest.raises(SettingsError, match="beyond 65504"):
        pipe.set_annotations([doc], pipe.predict([doc]))


def test_two_pipes_with_one_attr_are_refused() -> None:
    """Also the same one: spaCy's add_pipe(source=...) adds the pipe itself."""
    nlp, other = spacy.blank("xx"), pipeline()
    nlp.add_pipe("elmo", source=other)
    for source, message in (
        (shared(), r"the pipe '\w+' has the same"),
        (other, "twice in the pipeline.*source the second"),
    ):
        with pytest.raises(SettingsError, match=message):
            nlp.add_pipe("elmo", name="second", source=source)
        nlp.remove_pipe("second")
    assert nlp("the bank")._.elmo.shape == (2, 32)


def test_update_annotates_and_learns_nothing() -> None:
    nlp = pipeline()
    example = Example.from_dict(nlp.make_doc("the bank"), {})
    before = nlp.get_pipe("elmo").to_bytes()
    assert nlp.update([example], sgd=nlp.create_optimizer()) == {"elmo": 0.0}
    assert nlp.get_pipe("elmo").update([example]) == {"elmo": 0.0}
    assert nlp.get_pipe("elmo").to_bytes() == before
    assert example.predicted._.elmo.shape == (2, 32)


def test_updates_return_memory_that_was_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp, calls = pipeline(), []
    monkeypatch.setattr("spacy_elmo.pipeline.elmo.trim", lambda: calls.append(1))
    for _ in range(2 * TRIM_EVERY):
        nlp.get_pipe("elmo").update([])
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cache_mb": -1}, "cache_mb is -1"),
        ({"max_batch_tokens": 0}, "max_batch_tokens is 0"),
        ({"learn_rate_factor": "0.1"}, "learn_rate_factor is '0.1'"),  # a number in quotes in a config file
        ({"learn_rate_factor": 0.0}, "learn_rate_factor is 0.0"),
        ({"frozen": False, "model": {"stateful": True}}, "model.stateful is true and frozen is false"),
        ({"set_vectors": True, "store": "none"}, 'set_vectors is true, but store is "none"'),
        ({"scalar_mix_parameters": ["0", "0", "1"]}, r"are \['0', '0', '1'\]. Expected finite numbers"),
        ({"model": {"width": 0}}, "width is 0. Expected a whole number"),
        ({"model": {"cached_words": -1}}, "cached_words is -1"),
        ({"model": {"stateful": True, "trainable": True}}, "model.stateful and model.trainable"),
        ({"model": {"weight_file": "x"}}, r"weight_file is set, but options_file is not\. Set both .*, or neither"),
        ({"model": {"bilm": "en_core", "weight_file": "x"}}, "bilm is 'en_core', and weight_file is set too"),
        ({"model": "runs/mine"}, r'config=\{"model": \{"bilm": "runs/mine"\}\}\), .* \[components\.elmo\.model'),
        ({"attr": "not a name"}, "attr is 'not a name'"),
        ({"attr": "class"}, "attr is 'class', a name that spaCy or Python uses"),
        ({"attr": "has"}, "attr is 'has', a name that spaCy or Python uses"),
    ],
)
def test_settings_that_can_not_be_used(config: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacy.blank("xx").add_pipe("elmo", config=config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"bilm": "en_core"}, r"unexpected argument: 'bilm'(.|\n)*'model': \{[^}]*'bilm': None"),
        ({"store": "all"}, r"'all' is not .*'layers', 'layers_float16', 'mix', 'none'"),
    ],
)
def test_settings_that_spacy_refuses(config: dict, message: str) -> None:
    with pytest.raises(ConfigValidationError, match=message):
        spacy.blank("xx").add_pipe("elmo", config=config)


def test_attributes_of_others_are_not_overwritten() -> None:
    Doc.set_extension("mine", default=1, force=True)
    try:
        with pytest.raises(SettingsError, match=r"Doc\._\.mine was set by something else"):
            spacy.blank("xx").add_pipe("elmo", config={"attr": "mine"})
    finally:
        Doc.remove_extension("mine")


def test_one_word_names_a_bilm(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "random_a", tmp_path / "run" / "model-best")
    expected = shared()("A bank .")._.elmo
    for folder in (GOLDEN / "random_a", tmp_path / "run"):
        nlp = pipeline(None, {"bilm": str(folder)})
        np.testing.assert_array_equal(nlp("A bank .")._.elmo, expected)
    assert pipeline(None, {"bilm": "en_core"}).get_pipe("elmo").width == 512  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"bilm": "nope"}, r"'nope' names no biLM: .* \(en_core, .*\), .* \(original, .*model\.bilm"),
        (
            {"options_file": "gone/o.json", "weight_file": "w.hdf5"},
            r"gone/o\.json: no such file.*\(model\.options_file",
        ),
        (files("random_a")["model"] | {"weight_file": "w.hdf5"}, r"w\.hdf5: no such file.*\(model\.weight_file in a"),
    ],
)
def test_no_such_bilm(model: dict[str, str], message: str, tmp_path: Path) -> None:
    nlp = from_config(model)  # a saved pipeline has weights of its own, which it loads later
    for use in (lambda: nlp("a"), nlp.initialize, lambda: nlp.to_disk(tmp_path / "saved")):
        with pytest.raises(ElmoError, match=message):
            use()
    assert not (tmp_path / "saved" / "elmo").exists()
    np.testing.assert_array_equal(nlp.from_bytes(shared().to_bytes())("a")._.elmo, shared()("a")._.elmo)


def test_sizes_and_text() -> None:
    for name, layers, width in ((None, 3, 512), ("random_a", 3, 32)):
        pipe = pipeline(name).get_pipe("elmo")
        assert (pipe.layers, pipe.width) == (layers, width)  # type: ignore[attr-defined]
        assert repr(pipe) == f"<ElmoPipe 'elmo': attr='elmo', layers={layers}, width={width}, frozen=True>"
    missing = from_config({"options_file": "no.json", "weight_file": "no.hdf5"})
    assert repr(missing.get_pipe("elmo")) == "<ElmoPipe 'elmo': attr='elmo', layers and width unknown, frozen=True>"


@pytest.mark.parametrize(("frozen", "columns"), [(True, []), (False, ["LOSS ELMO"])])
def test_the_training_table_shows_no_loss_of_a_frozen_biLM(
    frozen: bool, columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    nlp = pipeline(frozen=frozen)
    _, finalize = console_logger()(nlp)
    finalize()
    assert re.findall("LOSS ELMO", capsys.readouterr().out) == columns


@pytest.mark.parametrize(
    ("lang", "row", "named"),
    [
        ("de", None, "en"),  # en_core
        ("en", None, None),
        ("xx", None, None),
        ("de", "| language | de |", None),
        ("en", "| language | de |", "de"),
        ("de", "| language | xx |", None),
        ("de", "| language | not told; words were separated by blanks |", None),
        ("de", "", None),
    ],
)
def test_a_biLM_of_another_language(lang: str, row: str | None, named: str | None, tmp_path: Path) -> None:
    config: dict[str, Any] = {}
    if row is not None:
        shutil.copytree(GOLDEN / "random_a", tmp_path / "bilm")
        table = f"# A biLM\n\n| | |\n|---|---|\n{row}\n"
        (tmp_path / "bilm" / "README.md").write_text(table, encoding="utf8")
        config = {"model": {"bilm": str(tmp_path / "bilm")}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spacy.blank(lang).add_pipe("elmo", config=config)
    assert [warning.category for warning in caught] == [OtherLanguageWarning] * (named is not None)
    for warning in caught:
        assert f"trained on the language {named!r}, but the pipeline's is {lang!r}" in str(warning.message)


def test_a_renamed_pipe_is_missed_by_those_who_ask_for_it() -> None:
    for upstream in ("elmo", "*"):
        nlp = with_tasks("tagger", block=elmo_block(upstream, 32))
        [source] = nlp.get_pipe("elmo").listeners  # type: ignore[attr-defined]
        assert repr(nlp.get_pipe("elmo")).endswith("frozen=True, listening_components=['tagger']>")
        doc = nlp.get_pipe("elmo")(nlp.make_doc("The bank"))
        nlp.rename_pipe("elmo", "second")
        if upstream == "elmo":
            with pytest.raises(NotEmbeddedError, match=r"named 'elmo', but there is none.*set upstream, which is 'elm"):
                source.predict([doc])
            nlp.rename_pipe("second", "elmo")
        np.testing.assert_array_equal(source.predict([doc])[0], doc._.elmo_layers)


MANY = [f"We sat on the bank of river {k} ." if k % 3 else f"bank {k}\n" for k in range(40)] + ["", " "]


def same(docs: list[Doc], others: list[Doc]) -> None:
    assert [doc.text for doc in docs] == [doc.text for doc in others]
    for doc, other in zip(docs, others):
        np.testing.assert_allclose(doc._.elmo_layers, other._.elmo_layers, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.W109.")  # hooks are not sent
def test_processes_also_after_this_one_has_run_the_biLM() -> None:
    torch.set_num_threads(2)  # they do not survive a fork
    nlp = shared(set_vectors=True)
    alone = list(nlp.pipe(MANY))
    docs = list(nlp.pipe(MANY, n_process=2, batch_size=7))
    same(docs, alone)
    for doc, other in zip(docs, alone):
        np.testing.assert_allclose(restore_vectors(doc).vector, other.vector, rtol=0, atol=1e-5)


@pytest.mark.slow
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
    expected = list(shared().pipe(MANY))
    nlp = pipeline(model={"cached_words": 10})  # loads, fills and empties its cache while all run
    barrier = threading.Barrier(8)

    def run(k: int) -> list[Doc]:
        barrier.wait()
        docs = list(nlp.pipe(MANY[k:] + MANY[:k], batch_size=k + 1))
        return docs[len(docs) - k :] + docs[: len(docs) - k]

    with ThreadPoolExecutor(8) as pool:
        for docs in pool.map(run, range(8)):
            same(docs, expected)


def test_as_tuples_and_select_pipes() -> None:
    nlp = pipeline()
    got = list(nlp.pipe([(text, k) for k, text in enumerate(MANY)], as_tuples=True))
    assert [k for _, k in got] == list(range(len(MANY)))
    same([doc for doc, _ in got], list(shared().pipe(MANY)))
    with nlp.select_pipes(disable="elmo"), pytest.raises(AttributeError, match="no elmo pipe"):
        _ = nlp("a")._.elmo
    assert nlp("a")._.elmo.shape == (1, 32)


def test_one_bad_doc_does_not_lose_its_batch() -> None:
    nlp, failed = pipeline(model={"get_spans": {"@misc": "refuses_bad.v1"}}), []
    for use in (lambda: nlp("bad"), lambda: list(nlp.pipe(["a", "bad"]))):
        with pytest.raises(RuntimeError, match="no"):
            use()
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.extend((name, doc.text, str(error)) for doc in docs))
    docs = list(nlp.pipe(["a b c", "bad x", "", "d e f"]))
    assert failed == [("elmo", "bad x", "no")]
    same(docs, list(shared().pipe(["a b c", "", "d e f"])))


def test_memory_zone() -> None:
    nlp = pipeline()
    before = nlp("the bank of xyzzy")._.elmo
    for _ in range(3):
        with nlp.memory_zone():
            docs = list(nlp.pipe(["the bank of xyzzy", "a word never seen: plugh"]))
            np.testing.assert_allclose(docs[0]._.elmo, before, rtol=0, atol=1e-5)
            kept = docs[1]._.elmo
    np.testing.assert_allclose(nlp("a word never seen: plugh")._.elmo, kept, rtol=0, atol=1e-5)


@Language.component("reads_elmo", requires=["token._.elmo", "doc._.elmo_layers"])
def reads_elmo(doc: Doc) -> Doc:
    return doc


def test_analyze_pipes_sees_who_needs_elmo() -> None:
    nlp = spacy.blank("xx")
    nlp.add_pipe("reads_elmo")
    assert sorted(nlp.analyze_pipes()["problems"]["reads_elmo"]) == ["doc._.elmo_layers", "token._.elmo"]
    nlp.add_pipe("elmo", first=True)
    analysis = nlp.analyze_pipes()
    assert analysis["problems"]["reads_elmo"] == []
    assert analysis["attrs"]["token._.elmo"] == {"assigns": ["elmo"], "requires": ["reads_elmo"]}


class Marked(np.ndarray):
    """An array that tells where it came from."""


class MarkingOps(NumpyOps):
    """The CPU's ops, with arrays of their own kind."""

    def asarray3f(self, data: Any, *, dtype: Any = "float32") -> Any:
        return super().asarray3f(data, dtype=dtype).view(Marked)


@pytest.fixture(params=["numpy", "marking", "cupy"])
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    if request.param == "cupy" and not has_cupy_gpu:
        pytest.skip("there is no GPU that cupy sees")
    with use_ops("cupy" if request.param == "cupy" else "numpy"):
        yield MarkingOps() if request.param == "marking" else get_ops(request.param)


def test_layers_are_the_ops_arrays(ops: Ops) -> None:
    nlp, plain = pipeline(), shared()
    nlp.get_pipe("elmo").model.ops = ops  # type: ignore[attr-defined]
    for doc in nlp.pipe(["We sat on the bank .", "", " ", "bank \n bank"]):
        expected = plain(doc.text)
        assert type(doc._.elmo_layers) is (Marked if isinstance(ops, MarkingOps) else ops.xp.ndarray)
        for name in ("elmo", "elmo_layers"):
            np.testing.assert_allclose(ops.to_numpy(doc._.get(name)), expected._.get(name), atol=1e-5)
