"""The Thinc layer on golden weights, and its gradient."""

from typing import Any

import numpy as np
import pytest
import spacy
import torch
from pipelines import files, pipeline, shared
from spacy.tokens import Doc
from thinc.api import SGD

from spacy_elmo.errors import SettingsError, TruncatedWordsWarning
from spacy_elmo.formats import batch_to_ids_array, read_options, read_weights
from spacy_elmo.inference import Engine
from spacy_elmo.models import bilm
from spacy_elmo.models.bilm import build_bilm, rows_of, to_docs, to_rows
from spacy_elmo.models.shim import BiLMShim, PipeSettings
from spacy_elmo.models.span_getters import build_whole_doc, build_windows
from spacy_elmo.modules import BiLM

FILES = files("random_a")["model"]
VOCAB = spacy.blank("xx").vocab
WORDS = [["the", "bank", "of", "the", "river"], ["one"], ["a", "\n", "b"]]


def docs() -> list[Doc]:
    return [Doc(VOCAB, words=words) for words in WORDS]


def module() -> BiLM:
    options = read_options(FILES["options_file"])
    return BiLM.from_arrays(options, read_weights(FILES["weight_file"], options))


def test_training_adds_the_gradients_of_one_torch_graph() -> None:
    model = build_bilm(**FILES, get_spans=build_whole_doc(), trainable=True)
    model.shims[0].pipe_settings = PipeSettings(max_batch_tokens=5)  # so that the docs run in two batches
    layers, backprop = model.begin_update(docs())
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=y.shape).astype("f") for y in layers]
    assert backprop(gradients) == []
    reference = module()
    total = torch.zeros(())
    for words, gradient in zip(WORDS, gradients):
        shown = [i for i, word in enumerate(words) if word.strip()]
        ids = torch.from_numpy(batch_to_ids_array([[words[i] for i in shown]]))
        total = total + (reference(ids).layers[:, 0, 1:-1] * torch.from_numpy(gradient[:, shown])).sum()
    total.backward()
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    for (name, got), (_, expected) in zip(shim.unfreeze().named_parameters(), reference.named_parameters()):
        assert got.grad is not None, name
        np.testing.assert_allclose(got.grad, expected.grad, atol=2e-5 * float(expected.grad.abs().max()), err_msg=name)
    before = model.predict(docs())[0]
    model.finish_update(SGD(0.1))
    assert np.abs(model.predict(docs())[0] - before).max() > 1e-4
    assert all(parameter.grad is None for parameter in shim.unfreeze().parameters())


def test_frozen_begin_update_leaves_no_gradient() -> None:
    model: Any = build_bilm(**FILES)
    layers, backprop = model.begin_update(docs())
    backprop([np.ones_like(y) for y in layers])
    assert all(parameter.grad is None for parameter in model.shims[0].unfreeze().parameters())


def test_stateful_reads_the_sentences_of_a_doc_as_one_row() -> None:
    def two_spans(given: list[Doc]) -> list[list]:
        return [[doc[:2], doc[2:]] if len(doc) > 2 else [doc[:]] for doc in given]

    model = build_bilm(**FILES, get_spans=two_spans, stateful=True)
    for _ in range(2):  # every doc begins from zero, so the second call gives the same
        predicted = model.predict(docs())
        reference, state = module(), module().lstm.zero_state(0)
        rows = []
        for words in (WORDS[0][:2], WORDS[0][2:]):
            output = reference(torch.from_numpy(batch_to_ids_array([words])), state)
            state = output.state
            rows.append(output.layers[:, 0, 1:-1].detach().numpy())
        np.testing.assert_allclose(predicted[0], np.concatenate(rows, 1), atol=1e-5)
    zero = build_bilm(**FILES, get_spans=two_spans).predict(docs())
    np.testing.assert_allclose(predicted[0][:, :2], zero[0][:, :2], atol=1e-5)
    assert np.abs(predicted[0][:, 2:] - zero[0][:, 2:]).max() > 1e-3


@pytest.mark.parametrize("way", ["predicted", "stateful", "trained"])
def test_batches_have_no_more_words_than_the_pipe_permits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the row of five words, alone, has more than three."""
    batches: list[list[int]] = []

    def seen(function: Any, place: int) -> Any:
        def call(*args: Any) -> Any:
            batches.append(sorted(len(words) for words in args[place]))
            return function(*args)

        return call

    monkeypatch.setattr(Engine, "run", seen(Engine.run, 1))
    monkeypatch.setattr(Engine, "run_from", seen(Engine.run_from, 1))
    monkeypatch.setattr(bilm, "batch_to_ids_array", seen(batch_to_ids_array, 0))
    model = build_bilm(**FILES, trainable=way == "trained", stateful=way == "stateful")
    results = []
    for most in (8192, 3):
        batches.clear()
        model.shims[0].pipe_settings = PipeSettings(max_batch_tokens=most)
        results.append(model.begin_update(docs())[0] if way == "trained" else model.predict(docs()))
        assert sorted(batches) == ([[1, 2, 5]] if most == 8192 else [[1, 2], [5]])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_a_copy_that_leaves_its_pipe_has_the_settings_of_its_config() -> None:
    model = pipeline(frozen=False, max_batch_tokens=10).get_pipe("elmo").model  # type: ignore[attr-defined]
    assert model.shims[0].pipe_settings == PipeSettings(tuned=True, learn_rate_factor=0.1, max_batch_tokens=10)
    assert model.copy().shims[0].pipe_settings == PipeSettings()


def test_docs_own_their_layers() -> None:
    """A slice would keep the whole batch in memory."""
    for layers in build_bilm(**FILES).predict([*docs(), *docs()]):
        assert np.asarray(layers).flags.owndata
        assert np.asarray(layers).flags.writeable


def test_to_rows_is_the_transpose_of_to_docs() -> None:
    rng = np.random.default_rng(0)
    docs = [Doc(VOCAB, words=[*"abcdefg", "\n", *"hij"]), Doc(VOCAB, words=["x"])]
    rows = rows_of(docs, build_windows(window=5, overlap=2))
    row_values = [rng.normal(size=(2, len(row.words), 3)).astype("f") for row in rows]
    doc_values = [rng.normal(size=(2, len(doc), 3)).astype("f") for doc in docs]
    there = sum(float((a * b).sum()) for a, b in zip(to_docs(docs, rows, row_values, 2, 3), doc_values))
    back = sum(float((a * b).sum()) for a, b in zip(row_values, to_rows(rows, doc_values)))
    assert there == pytest.approx(back, rel=1e-5)


WHOLE = {"get_spans": {"@span_getters": "spacy-elmo.whole_doc.v1"}}


@pytest.mark.slow
def test_a_long_text_without_a_sentence_end(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[list[int]] = []  # lengths of the sentences of each run
    run = Engine.run
    monkeypatch.setattr(Engine, "run", lambda self, s, *a: (batches.append([len(w) for w in s]), run(self, s, *a))[1])
    nlp = pipeline()
    doc = nlp("we sat on the bank of the river and looked at the water " * 2_000)
    assert max(sum(batch) for batch in batches) <= 8192
    assert {length for batch in batches for length in batch[:-1]} == {250}
    layers = doc._.elmo_layers
    assert layers.shape == (3, len(doc), 32)
    for start in (0, 200, 10_000):  # each token's vector comes from the window where it stands furthest from an edge
        window = nlp(Doc(nlp.vocab, words=[token.text for token in doc[start : start + 250]]))
        np.testing.assert_allclose(layers[:, start + 25 : start + 225], window._.elmo_layers[:, 25:225], atol=1e-5)


def test_windows_as_configured() -> None:
    getter = {"@span_getters": "spacy-elmo.windows.v1", "window": 10, "overlap": 4}
    nlp, whole = pipeline(model={"get_spans": getter}), pipeline(model=WHOLE)
    words = [f"w{k}" for k in range(23)]
    layers = nlp(Doc(nlp.vocab, words=words))._.elmo_layers
    # windows 0-10, 6-16, 12-22 and 18-23; tokens 8 and 9 stand further from an edge in the second one, and so on
    for start, first, last in ((0, 0, 8), (6, 8, 14), (12, 14, 20), (18, 20, 23)):
        alone = whole(Doc(whole.vocab, words=words[start : start + 10]))._.elmo_layers
        expected = alone[:, first - start : last - start]
        np.testing.assert_allclose(layers[:, first:last], expected, rtol=0, atol=1e-5)


@spacy.registry.misc("odd_spans.v1")
def odd_spans(kind: str) -> object:
    """Span getters of people's own."""
    chosen = {
        "overlapping": lambda doc: [doc[0:4], doc[2:6], doc[0:6]],
        "gap": lambda doc: [doc[0:2], doc[3:6]],
        "empty": lambda doc: [doc[0:0], doc[0:6], doc[6:6]],
        "none": lambda doc: [],
        "other doc": lambda doc: [Doc(doc.vocab, words=["x"] * 6)[:]],
        "no list": lambda doc: 3,
        "reversed": lambda doc: [doc[3:6], doc[0:3]],
    }
    return lambda docs: [chosen[kind](doc) for doc in docs] if kind in chosen else []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overlapping", "empty", "reversed"])
def test_odd_spans_that_cover_the_doc(kind: str) -> None:
    nlp, whole = pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": kind}}), pipeline(model=WHOLE)
    words = list("abcdef")
    got = nlp(Doc(nlp.vocab, words=words))._.elmo_layers
    parts = {"overlapping": [(0, 6)], "empty": [(0, 6)], "reversed": [(0, 3), (3, 6)]}[kind]
    expected = [whole(Doc(whole.vocab, words=words[a:b]))._.elmo_layers for a, b in parts]
    chosen = slice(2, 4) if kind == "overlapping" else slice(None)
    np.testing.assert_allclose(got[:, chosen], np.concatenate(expected, 1)[:, chosen], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("gap", "no span for token 2 \\('c'\\)"),
        ("none", "no span for token 0"),
        ("other doc", "Expected a list of its spans"),
        ("no list", "returned 3 for a doc"),
        ("nothing", "returned 0 lists of spans"),
    ],
)
@pytest.mark.parametrize("stateful", [False, True])
def test_odd_spans_that_are_refused(kind: str, message: str, stateful: bool) -> None:
    nlp = pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": kind}, "stateful": stateful})
    with pytest.raises(SettingsError, match=message):
        nlp("a b c d e f")


def test_whitespace_is_not_shown_to_the_biLM() -> None:
    nlp = shared()
    words = [" ", "We", "\n\n", "sat", "\t", "\u3000", "down", ".", " \n"]
    layers = nlp(Doc(nlp.vocab, words=words))._.elmo_layers
    is_word = np.array([bool(word.strip()) for word in words])
    plain = nlp(Doc(nlp.vocab, words=["We", "sat", "down", "."]))
    np.testing.assert_allclose(layers[:, is_word], plain._.elmo_layers, rtol=0, atol=1e-5)
    assert not layers[:, ~is_word].any()


def test_a_getter_may_leave_out_whitespace() -> None:
    nlp = pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": "gap"}})
    doc = nlp(Doc(nlp.vocab, words=["a", "b", "\n", "c", "d", "e"]))
    assert doc._.elmo_layers[:, [0, 1, 3, 4, 5]].any(2).all()
    assert not doc._.elmo_layers[:, 2].any()


def test_words_longer_than_the_biLM_reads_are_counted_and_said_once() -> None:
    nlp = pipeline()
    elmo = nlp.get_pipe("elmo")
    list(nlp.pipe(["x" * 48, "no long words"]))
    assert elmo.n_truncated == 0
    with pytest.warns(TruncatedWordsWarning, match=r"has 49 bytes in UTF-8.*first 48.*n_truncated") as caught:
        docs = list(nlp.pipe(["x" * 49 + " " + "x" * 48 + "y", "\u6771" * 17]))
    assert len(caught) == 1
    assert elmo.n_truncated == 3
    np.testing.assert_allclose(docs[0]._.elmo_layers[0, 0], docs[0]._.elmo_layers[0, 1], atol=1e-6)
    nlp("x" * 49)  # no second warning
    assert elmo.n_truncated == 4
    for use in (lambda nlp: nlp("x" * 60), lambda nlp: list(nlp.pipe(["a", "x" * 60]))):
        with pytest.raises(TruncatedWordsWarning):  # it is an error in tests: another pipe says it too
            use(pipeline())


def test_words_of_overlapping_windows_and_of_docs_that_were_tried_again_count_once() -> None:
    windows = {"@span_getters": "spacy-elmo.windows.v1", "window": 4, "overlap": 3}
    for getter, texts in (
        (windows, ["a b c " + "x" * 60 + " d e f"]),
        ({"@misc": "refuses_bad.v1"}, ["x" * 60, "bad"]),
    ):
        nlp = spacy.blank("xx")
        nlp.add_pipe("elmo", name="mine", config=files("random_a", get_spans=getter))
        nlp.set_error_handler(lambda *_: None)
        with pytest.warns(TruncatedWordsWarning, match=r"nlp\.get_pipe\('mine'\)\.n_truncated"):
            assert len(list(nlp.pipe(texts))) == 1
        assert nlp.get_pipe("mine").n_truncated == 1


def test_stateful_reads_spans_in_the_docs_order() -> None:
    got, expected = (
        nlp(Doc(nlp.vocab, words=list("abcdef"), sent_starts=[True, False, False] * 2))
        for nlp in (
            pipeline(model={"get_spans": {"@misc": "odd_spans.v1", "kind": "reversed"}, "stateful": True}),
            pipeline(model={"stateful": True}),
        )
    )
    np.testing.assert_allclose(got._.elmo_layers, expected._.elmo_layers, rtol=0, atol=1e-5)
