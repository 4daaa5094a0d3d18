"""The engine takes weights over: everything that needs them gets them back, bit for bit."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest
import spacy
import torch

from spacy_elmo.inference import engine
from spacy_elmo.models.shim import BiLMShim
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.precision import Precision

SENTENCES = [["It", "was", "late", "."], ["No"]]
NAME = "lstm.layers.1.input_weight"


@pytest.fixture(params=["float32", "auto"])
def shim(request: pytest.FixtureRequest) -> BiLMShim:
    """One whose engine was used."""
    shim = BiLMShim(None, None, request.param)
    shim.engine.run(SENTENCES)
    return shim


@pytest.fixture(scope="module")
def expected() -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_bilm().to_arrays().items()}


def weights(shim: BiLMShim) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in shim.bilm.to_arrays().items()}


def is_taken(shim: BiLMShim) -> bool:
    return bool(shim._model.lstm.get_parameter(NAME[5:]).numel() == 0)


def test_once_in_memory(shim: BiLMShim, expected: dict[str, bytes]) -> None:
    assert is_taken(shim)
    assert shim.options == load_bilm().options
    assert is_taken(shim)
    assert weights(shim) == expected
    assert not is_taken(shim)


KEEPING: list[Callable[[BiLMShim], BiLMShim]] = [
    lambda shim: BiLMShim(None, None, shim.precision).from_bytes(shim.to_bytes()),
    lambda shim: pickle.loads(pickle.dumps(shim)),
    copy.deepcopy,
    BiLMShim.copy,
]


@pytest.mark.parametrize("way", KEEPING, ids=["bytes", "pickle", "deepcopy", "copy"])
def test_saved_and_copied(shim: BiLMShim, expected: dict[str, bytes], way: Callable[[BiLMShim], BiLMShim]) -> None:
    other = way(shim)
    assert is_taken(shim)
    for got, wanted in zip(other.engine.run(SENTENCES), shim.engine.run(SENTENCES), strict=True):
        assert np.array_equal(got, wanted)
    assert other.fingerprint == shim.fingerprint
    assert weights(other) == expected == weights(shim)


def test_the_fingerprint_is_the_same(shim: BiLMShim) -> None:
    taken = shim.fingerprint
    assert is_taken(shim)
    assert taken == BiLMShim(None, None).fingerprint


def test_moved(shim: BiLMShim, expected: dict[str, bytes]) -> None:
    shim.to_device("cpu", -1)
    assert weights(shim) == expected


def test_who_has_the_network_keeps_it(expected: dict[str, bytes]) -> None:
    """A training's gradients are on its parameters."""
    shim = BiLMShim(None, None)
    bilm = shim.bilm
    shim.engine.run(SENTENCES)
    assert bilm is shim.bilm
    assert not is_taken(shim)
    assert weights(shim) == expected
    bilm.lstm.get_parameter(NAME[5:]).grad = torch.ones(2, 128, 4096)
    shim.finish_update(lambda key, values, gradient, lr_scale: (values - gradient, gradient))  # type: ignore[arg-type]
    before = np.frombuffer(expected[NAME], np.float32)
    assert np.array_equal(np.frombuffer(weights(shim)[NAME], np.float32), before - 1)
    changed = shim.engine.run(SENTENCES)
    assert not np.array_equal(changed[0], BiLMShim(None, None).engine.run(SENTENCES)[0])


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_nothing_is_lost_where_the_engine_can_not_be_made(
    precision: Precision, monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    shim = BiLMShim(None, None, precision)

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine.Engine, "_run_stack", fail)  # the last of what it does
        with pytest.raises(MemoryError):
            _ = shim.engine
    assert all(parameter.numel() for parameter in shim._model.parameters())
    shim.engine.run(SENTENCES)
    assert is_taken(shim)
    assert weights(shim) == expected


def test_a_pipe_reads_the_files_once() -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("elmo")
    nlp.initialize()
    nlp("It was late.")
    assert is_taken(pipe.model.shims[0])  # type: ignore[attr-defined]


def test_a_pipe_that_is_first_used_in_inference_mode() -> None:
    nlp, text = spacy.blank("en"), "It was late."
    nlp.add_pipe("elmo")
    with torch.inference_mode():
        inside = nlp(text)._.elmo
    assert np.array_equal(nlp(text)._.elmo, inside)
    shim = nlp.get_pipe("elmo").model.shims[0]  # type: ignore[attr-defined]
    assert shim.from_bytes(shim.to_bytes()).fingerprint == BiLMShim(None, None).fingerprint


def test_nothing_is_lost_where_memory_is_short_for_giving_back_too(
    monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    shim = BiLMShim(None, None)

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine.Engine, "_run_stack", fail)
        patch.setattr(engine.Engine, "matrices", fail)
        with pytest.raises(MemoryError):
            _ = shim.engine
        assert is_taken(shim)
        with pytest.raises(MemoryError):  # and no network without weights
            shim.to_bytes()
    assert BiLMShim(None, None).fingerprint == shim.fingerprint
    assert not is_taken(shim)
    assert weights(shim) == expected
    shim.engine.run(SENTENCES)


def test_a_pickle_begun_before_the_first_use_is_whole() -> None:
    shim = BiLMShim(None, None)
    _ = shim.options  # its files are read
    state = shim.__getstate__()
    shim.engine.run(SENTENCES)  # by another thread, before pickle reads the state
    assert is_taken(shim)
    assert all(parameter.numel() for parameter in state["_model"].parameters())


def test_weights_that_came_in_inference_mode_can_be_trained() -> None:
    saved, shim = BiLMShim(None, None).to_bytes(), BiLMShim(None, None)
    with torch.inference_mode():
        shim.from_bytes(saved)
        shim.engine.run(SENTENCES)
    shim.train_all()
    assert all(parameter.requires_grad for parameter in shim.bilm.parameters())
    assert not any(parameter.is_inference() for parameter in shim.bilm.parameters())


def test_torchs_default_device_makes_no_difference(expected: dict[str, bytes]) -> None:
    saved = BiLMShim(None, None).to_bytes()
    with torch.device("meta"):
        shim = BiLMShim(None, None).from_bytes(saved)
    assert weights(shim) == expected
