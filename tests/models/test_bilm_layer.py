"""The Thinc layer on golden weights, and its gradient."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc
from thinc.api import SGD

from spacy_elmo.errors import OptionsError, SettingsError, WeightsError
from spacy_elmo.formats import batch_to_ids_array, read_options, read_weights
from spacy_elmo.inference import Engine, LayerCache
from spacy_elmo.models import bilm as layer
from spacy_elmo.models.architectures import build_bilm
from spacy_elmo.models.bilm import leave_component, serve_component
from spacy_elmo.models.shim import BiLMShim
from spacy_elmo.models.span_getters import build_whole_doc
from spacy_elmo.modules import BiLM
from spacy_elmo.modules import loading as precision

GOLDEN = Path(__file__).parents[1] / "golden" / "random_a"
FILES = {"options_file": str(GOLDEN / "options.json"), "weight_file": str(GOLDEN / "weights.hdf5")}
VOCAB = spacy.blank("en").vocab
WORDS = [["the", "bank", "of", "the", "river"], ["one"], ["a", "\n", "b"]]


def docs() -> list[Doc]:
    return [Doc(VOCAB, words=words) for words in WORDS]


def module() -> BiLM:
    options = read_options(FILES["options_file"])
    return BiLM.from_arrays(options, read_weights(FILES["weight_file"], options))


def test_predict_equals_the_module() -> None:
    model = build_bilm(**FILES, get_spans=build_whole_doc())
    sentences = [[word for word in words if word.strip()] for words in WORDS]
    expected = module()(torch.from_numpy(batch_to_ids_array(sentences))).layers.detach().numpy()
    predicted = model.predict(docs())
    for k, layers in enumerate(predicted):
        shown = [i for i, word in enumerate(WORDS[k]) if word.strip()]
        np.testing.assert_allclose(layers[:, shown], expected[:, k, 1 : 1 + len(shown)], atol=1e-5)
    assert model.get_dim("nO") == 32


def test_training_adds_the_gradients_of_one_torch_graph() -> None:
    model = build_bilm(**FILES, get_spans=build_whole_doc(), trainable=True)
    model.attrs["settings"].max_batch_tokens = 5  # so that the docs run in two batches
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
    model = build_bilm(**FILES)
    layers, backprop = model.begin_update(docs())
    backprop([np.ones_like(y) for y in layers])
    shim = model.shims[0]
    assert isinstance(shim, BiLMShim)
    assert all(parameter.grad is None for parameter in shim.unfreeze().parameters())


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
    monkeypatch.setattr(layer, "batch_to_ids_array", seen(batch_to_ids_array, 0))
    model = build_bilm(**FILES, trainable=way == "trained", stateful=way == "stateful")
    results = []
    for most in (8192, 3):
        batches.clear()
        serve_component(model, "elmo", max_batch_tokens=most, tuned=False, learn_rate_factor=1.0, cache=None)
        results.append(model.begin_update(docs())[0] if way == "trained" else model.predict(docs()))
        assert sorted(batches) == ([[1, 2, 5]] if most == 8192 else [[1, 2], [5]])
    for a, b in zip(*results):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_a_copy_that_leaves_its_pipe_has_the_settings_of_its_config() -> None:
    model = build_bilm(**FILES)
    settings = model.attrs["settings"]
    serve_component(
        model, "elmo", max_batch_tokens=8192, tuned=True, learn_rate_factor=0.1, cache=LayerCache(2**20, None)
    )
    assert (model.shims[0].learn_rate_factor, settings.tuned) == (0.1, True)
    leave_component(model)
    assert (model.shims[0].learn_rate_factor, settings.tuned, settings.cache) == (1.0, False, None)


def test_to_bytes_holds_all_and_copies_are_equal() -> None:
    model = build_bilm(**FILES)
    expected = model.predict(docs())
    other = build_bilm(options_file="gone/options.json", weight_file="gone/weights.hdf5").from_bytes(model.to_bytes())
    for copy in (other, model.copy(), other.copy()):
        for a, b in zip(copy.predict(docs()), expected):
            assert (a == b).all()


def test_the_word_cache_is_emptied_when_weights_change() -> None:
    model, other = build_bilm(**FILES), build_bilm(**FILES, trainable=True)
    model.predict(docs())  # fills the cache
    shim = other.shims[0]
    assert isinstance(shim, BiLMShim)
    other.predict(docs())
    _, backprop = other.begin_update(docs())
    backprop([np.ones((3, len(words), 32), "f") for words in WORDS])
    other.finish_update(SGD(0.1))
    options = shim.options
    fresh = build_bilm(**FILES, cached_words=0).from_bytes(other.to_bytes())
    assert fresh.shims[0].to_bytes() == other.shims[0].to_bytes() != model.shims[0].to_bytes()
    for changed in (other, model.from_bytes(other.to_bytes())):
        for a, b in zip(changed.predict(docs()), fresh.predict(docs())):
            assert a.shape[2] == options.width
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_missing_files_name_the_setting() -> None:
    with pytest.raises(OptionsError, match=r"gone/options\.json.*model\.options_file"):
        build_bilm(options_file="gone/options.json", weight_file=FILES["weight_file"]).initialize()
    with pytest.raises(WeightsError, match=r"gone\.hdf5.*model\.weight_file"):
        build_bilm(options_file=FILES["options_file"], weight_file="gone.hdf5").predict(docs())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options_file": "x"}, "options_file is set, but weight_file is not"),
        ({"weight_file": "x"}, "weight_file is set, but options_file is not"),
        ({"precision": "bfloat16"}, 'model.precision is "bfloat16"'),
        ({"stateful": True, "trainable": True}, "model.stateful and model.trainable"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: False)
    with pytest.raises(SettingsError, match=message):
        build_bilm(**settings)
