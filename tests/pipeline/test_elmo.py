"""The component on text."""

import copy
import dataclasses
import pickle
import shutil
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import spacy
from golden_files import GOLDEN_NAMES, read_golden
from pipelines import pipeline
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from spacy_elmo.errors import ElmoError, NotEmbeddedError, SettingsError
from spacy_elmo.inference import Engine
from spacy_elmo.inference.words import WordEncoder
from spacy_elmo.pipeline.elmo import ElmoPipe

GOLDEN = Path(__file__).parents[1] / "golden"
TEXTS = [
    "Stick to the river bank .",
    "",
    " \n ",
    "one",
    "x" * 10_000 + " y",
    "naïve 東京 👩‍👩‍👧 \u200b ok",
    "a  b\n\nc",
]


def files(name: str) -> dict[str, dict[str, str]]:
    folder = GOLDEN / name
    return {"model": {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}}


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    return nlp


@pytest.mark.filterwarnings("ignore::spacy_elmo.errors.TruncatedWordsWarning")
@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_official_files_give_allennlps_vectors(name: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config=files(name))
    golden = read_golden(GOLDEN / name)
    # a Doc takes no empty words, and whitespace is not shown to the biLM
    chosen = [i for i, words in enumerate(golden.sentences) if all(word.strip() for word in words)]
    assert len(chosen) > 3
    docs = [Doc(nlp.vocab, words=golden.sentences[i]) for i in chosen]
    for i, doc in zip(chosen, nlp.pipe(docs)):
        expected = golden.expected[f"zero_state/{i}"]
        np.testing.assert_allclose(doc._.elmo_layers, expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(doc._.elmo, expected.mean(0), rtol=0, atol=1e-5)


def test_works_at_once_and_after_initialize(nlp: Language) -> None:
    doc = nlp("Stick to the river bank .")
    assert doc._.elmo_layers.shape == (3, 6, 256)
    assert doc._.elmo.dtype == np.float32
    other = spacy.blank("en")
    other.add_pipe("elmo")
    other.initialize()
    assert (other("Stick to the river bank .")._.elmo == doc._.elmo).all()


def test_attributes_of_tokens_and_spans_are_parts_of_the_docs(nlp: Language) -> None:
    doc = nlp("Stick to the river bank .")
    layers = doc._.elmo_layers
    np.testing.assert_allclose(doc._.elmo, layers.mean(0), atol=1e-6)
    assert (doc[4]._.elmo_layers == layers[:, 4]).all()
    assert (doc[2:5]._.elmo_layers == layers[:, 2:5]).all()
    np.testing.assert_allclose(doc[4]._.elmo, doc._.elmo[4], atol=1e-6)
    np.testing.assert_allclose(doc[2:5]._.elmo, doc._.elmo[2:5], atol=1e-6)


@pytest.mark.filterwarnings("ignore::spacy_elmo.errors.TruncatedWordsWarning")
def test_any_text_in_any_company(nlp: Language) -> None:
    together = list(nlp.pipe(TEXTS))
    assert [doc.text for doc in together] == TEXTS
    for text, doc in zip(TEXTS, together):
        alone = nlp(text)
        assert doc._.elmo_layers.shape == (3, len(doc), 256)
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
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"max_batch_tokens": 20})
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


@pytest.mark.slow
@pytest.mark.parametrize(("cached_words", "second"), [(0, [3]), (2, [1]), (100, [1])])
def test_each_distinct_word_is_encoded_once(
    monkeypatch: pytest.MonkeyPatch, cached_words: int, second: list[int]
) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"cached_words": cached_words}})
    encoded: list[int] = []
    encode = WordEncoder.__call__
    monkeypatch.setattr(WordEncoder, "__call__", lambda self, ids: (encoded.append(len(ids)), encode(self, ids))[1])
    list(nlp.pipe(["the bank of the river", "the bank", "of the the the"]))
    assert encoded == [2, 4]  # <S>, </S>; the, bank, of, river
    list(nlp.pipe(["of the river", "rivers"])) if cached_words != 2 else list(nlp.pipe(["of river", "rivers"]))
    assert encoded[2:] == ([4] if cached_words == 0 else second)


def test_endless_streams_flow(nlp: Language) -> None:
    endless = nlp.pipe(f"text number {i}" for i in count())
    assert [next(endless)._.elmo.shape for _ in range(3)] == [(3, 256)] * 3


@pytest.mark.slow
@pytest.mark.parametrize("store", ["layers", "layers_float16", "mix"])
def test_store_and_mix(store: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={**files("random_a"), "store": store, "scalar_mix_parameters": [0.5, -1.0, 2.0]})
    plain = spacy.blank("en")
    plain.add_pipe("elmo", config=files("random_a"))
    doc, layers = nlp("the bank of the river"), plain("the bank of the river")._.elmo_layers
    weights = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    tolerance = 2e-3 if store == "layers_float16" else 1e-5
    np.testing.assert_allclose(doc._.elmo, np.tensordot(weights, layers, 1), atol=tolerance)
    np.testing.assert_allclose(doc[1]._.elmo, doc._.elmo[1], atol=1e-6)
    if store == "mix":
        with pytest.raises(AttributeError, match="store"):
            _ = doc._.elmo_layers
    else:
        assert doc._.elmo_layers.dtype == np.float32


def test_values_that_float16_does_not_hold(nlp: Language) -> None:
    model: Model = Model("large", lambda model, docs, is_train: ([np.full((3, 1, 4), 1e5, "f")], lambda d: []))
    pipe, doc = ElmoPipe(nlp.vocab, model, attr="other", store="layers_float16"), nlp.make_doc("a")
    with pytest.raises(SettingsError, match="beyond 65504"):
        pipe.set_annotations([doc], pipe.predict([doc]))


def test_docs_without_vectors_say_so(nlp: Language) -> None:
    doc = nlp.make_doc("never seen")
    for part in (doc, doc[0], doc[0:1]):
        for name in ("elmo", "elmo_layers"):
            with pytest.raises(NotEmbeddedError, match="no elmo pipe with that attr has processed it"):
                part._.get(name)


def test_none_frees_and_nothing_else_can_be_set(nlp: Language) -> None:
    doc = nlp("a b")
    with pytest.raises(SettingsError, match="only be set to None"):
        doc._.elmo = np.zeros(3)
    doc._.elmo = None
    assert doc.user_data == {}


def test_two_pipes_with_different_attr() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.add_pipe("elmo", name="second", config={**files("random_b"), "attr": "other"})
    doc = nlp("the bank")
    assert doc._.elmo.shape == (2, 256)
    assert doc._.other_layers.shape == (4, 2, 64)


def test_two_pipes_with_one_attr_are_refused() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    with pytest.raises(SettingsError, match="the pipe 'elmo' has the same"):
        nlp.add_pipe("elmo", name="second")


def test_sourced_pipes_with_one_attr_are_refused() -> None:
    nlp, other = pipeline(), pipeline()
    with pytest.raises(SettingsError, match="the pipe 'elmo' has the same"):
        nlp.add_pipe("elmo", name="second", source=other)


def test_a_pipe_that_is_sourced_twice_is_refused() -> None:
    """spaCy's add_pipe(source=...) adds the pipe itself."""
    nlp, other = spacy.blank("en"), pipeline()
    nlp.add_pipe("elmo", source=other)
    with pytest.raises(SettingsError, match=r"'second' is twice in the pipeline.*source the second"):
        nlp.add_pipe("elmo", name="second", source=other)
    nlp.remove_pipe("second")
    assert nlp("the bank")._.elmo.shape == (2, 32)


def test_pipes_that_share_a_model_are_refused(nlp: Language) -> None:
    first = pipeline().get_pipe("elmo")
    model, attrs = first.model, dict(first.model.attrs)
    settings = dataclasses.replace(model.attrs["settings"])
    with pytest.raises(SettingsError, match=r"'second' has the same model as the pipe 'elmo'.*model\.copy\(\)"):
        ElmoPipe(nlp.vocab, model, "second", attr="other", frozen=False, learn_rate_factor=0.5)
    assert model.attrs == attrs
    assert model.attrs["settings"] == settings
    assert model.shims[0].learn_rate_factor == 0.1
    second = ElmoPipe(nlp.vocab, model.copy(), "second", attr="other", frozen=False, learn_rate_factor=0.5)
    assert (first.model.shims[0].learn_rate_factor, second.model.shims[0].learn_rate_factor) == (0.1, 0.5)
    assert (first.model.attrs["settings"].tuned, second.model.attrs["settings"].tuned) == (False, True)


def test_the_model_of_an_unpickled_pipe_is_not_shared_either(nlp: Language) -> None:
    loaded = pickle.loads(pickle.dumps(nlp.get_pipe("elmo")))
    with pytest.raises(SettingsError, match="'second' has the same model"):
        ElmoPipe(nlp.vocab, loaded.model, "second", attr="other")


def test_a_model_may_be_used_again_after_its_pipe_is_gone(nlp: Language) -> None:
    first = pipeline().get_pipe("elmo")
    model = first.model
    for copied in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        with pytest.raises(SettingsError, match="the same model"):
            ElmoPipe(nlp.vocab, copied.model, attr="other")
    del first, copied
    pipe = ElmoPipe(nlp.vocab, model, attr="other")
    assert model.attrs["settings"].cache is pipe.cache


def test_bytes_before_use_are_those_after_use() -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("elmo")
    before = pipe.to_bytes(exclude=["vocab"])  # type: ignore[attr-defined]
    nlp("the bank")
    assert pipe.to_bytes(exclude=["vocab"]) == before  # type: ignore[attr-defined]


def test_update_annotates_and_learns_nothing(nlp: Language) -> None:
    example = Example.from_dict(nlp.make_doc("the bank"), {})
    before = nlp.get_pipe("elmo").to_bytes()
    losses = nlp.update([example], sgd=nlp.create_optimizer())
    assert losses == {"elmo": 0.0}
    assert nlp.get_pipe("elmo").to_bytes() == before
    assert nlp.get_pipe("elmo").update([example]) == {"elmo": 0.0}
    assert example.predicted._.elmo.shape == (2, 256)


def test_error_handler_keeps_the_rest_of_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"max_batch_tokens": 3})
    failed: list[str] = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.extend(doc.text for doc in docs))
    run = Engine.run

    def failing(self: Engine, sentences: list[list[str]], *rest: object) -> object:
        if any("bad" in words for words in sentences):
            raise RuntimeError("no")
        return run(self, sentences, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Engine, "run", failing)
    assert [doc.text for doc in nlp.pipe(["a b c", "bad x y", "d e f"])] == ["a b c", "d e f"]
    assert failed == ["bad x y"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cache_mb": -1}, "cache_mb is -1"),
        ({"max_batch_tokens": 0}, "max_batch_tokens is 0"),
        ({"learn_rate_factor": "0.1"}, "learn_rate_factor is '0.1'"),  # a number in quotes in a config file
        ({"scalar_mix_parameters": ["0", "0", "1"]}, r"scalar_mix_parameters are \['0', '0', '1'\]"),
        ({"model": {"width": "256"}}, "width is '256' in spacy-elmo.BiLM.v1. Expected .* a whole number"),
        ({"model": {"width": 0}}, "width is 0 in spacy-elmo.BiLM.v1"),
        ({"attr": "not a name"}, "attr is 'not a name'"),
        ({"attr": "class"}, "attr is 'class', a name that spaCy or Python uses"),
        ({"attr": "has"}, "attr is 'has', a name that spaCy or Python uses"),
    ],
)
def test_settings_that_can_not_be_used(config: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        spacy.blank("en").add_pipe("elmo", config=config)


def test_mix_parameters_of_another_number_of_layers() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"scalar_mix_parameters": [1.0, 2.0]})
    with pytest.raises(SettingsError, match=r"has 2 weights\. Expected 3"):
        nlp("a")


@pytest.mark.parametrize("weights", [[float("nan"), 0.0, 0.0], [float("inf"), 0.0, 0.0]])
def test_mix_parameters_that_are_no_numbers(nlp: Language, weights: list[float]) -> None:
    with pytest.raises(SettingsError, match=r"Expected finite numbers"):
        ElmoPipe(nlp.vocab, nlp.get_pipe("elmo").model, attr="other", scalar_mix_parameters=weights)


def test_models_that_forget_a_doc(nlp: Language) -> None:
    model: Model = Model("forgets", lambda model, docs, is_train: ([np.zeros((3, 1, 4), "f")], lambda d: []))
    pipe, docs = ElmoPipe(nlp.vocab, model, attr="other"), [nlp.make_doc("a"), nlp.make_doc("b")]
    with pytest.raises(SettingsError, match="the model returned 1 arrays for 2 docs"):
        pipe.set_annotations(docs, pipe.predict(docs))


def test_attributes_of_others_are_not_overwritten() -> None:
    Doc.set_extension("mine", default=1, force=True)
    try:
        with pytest.raises(SettingsError, match=r"Doc\._\.mine was set by something else"):
            spacy.blank("en").add_pipe("elmo", config={"attr": "mine"})
    finally:
        Doc.remove_extension("mine")


def test_one_word_names_a_bilm(golden: Path, tmp_path: Path) -> None:
    folder = golden / "random_a"
    files = {"options_file": str(folder / "options.json"), "weight_file": str(folder / "weights.hdf5")}
    shutil.copytree(folder, tmp_path / "run" / "model-best")
    vectors = []
    for model in (files, {"bilm": str(folder)}, {"bilm": str(tmp_path / "run")}):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": model})
        vectors.append(nlp("A bank .")._.elmo)
        shutil.rmtree(tmp_path / "saved", ignore_errors=True)
        nlp.to_disk(tmp_path / "saved")
    np.testing.assert_array_equal(vectors[1], vectors[0])
    np.testing.assert_array_equal(vectors[2], vectors[0])
    shutil.rmtree(tmp_path / "run")  # a saved pipeline needs no other file
    np.testing.assert_array_equal(spacy.load(tmp_path / "saved")("A bank .")._.elmo, vectors[0])
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": "en_mini"}})
    assert nlp("A bank .")._.elmo.shape == (3, 256)


def test_one_word_and_files_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="bilm is 'en_mini', and weight_file is set too"):
        spacy.blank("en").add_pipe("elmo", config={"model": {"bilm": "en_mini", "weight_file": "x"}})
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(tmp_path / "gone")}})
    with pytest.raises(ElmoError, match=r"gone' names no biLM: there is no such folder.*model\.bilm"):
        nlp("A bank .")


def test_missing_files_name_setting_and_path() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"options_file": "gone/o.json", "weight_file": "gone/w.hdf5"}})
    for use in (lambda: nlp("a"), nlp.initialize):
        with pytest.raises(ElmoError, match=r"gone/o\.json: no such file.*options_file \(model\.options_file in a"):
            use()
