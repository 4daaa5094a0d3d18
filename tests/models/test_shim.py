"""The shim holds one owner of the weights: everything that needs them gets them, bit for bit."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from pipelines import GOLDEN
from thinc.api import SGD

from spacy_elmo.inference import Engine
from spacy_elmo.inference.embedder import fingerprint_of
from spacy_elmo.inference.linear import Precision, dtype_of
from spacy_elmo.models.shim import BiLMShim
from spacy_elmo.modules import load_bilm
from spacy_elmo.modules.loading import embedded_files

FILES = [str(GOLDEN / "random_a" / name) for name in ("options.json", "weights.hdf5")]
SENTENCES = [["It", "was", "late", "."], ["No"]]
NAME = "lstm.layers.1.input_weight"


@pytest.fixture(params=["float32", "auto"])
def shim(request: pytest.FixtureRequest) -> BiLMShim:
    """One whose engine was used."""
    shim = BiLMShim(*FILES, request.param)
    shim.load().engine.run(SENTENCES)
    return shim


@pytest.fixture(scope="module")
def expected() -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_bilm(*FILES).to_arrays().items()}


def weights(shim: BiLMShim) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in shim.to_arrays().items()}


def test_reading_leaves_it_as_it_is(shim: BiLMShim, expected: dict[str, bytes]) -> None:
    embedder = shim.load()
    engine = embedder.engine
    assert shim.options == load_bilm(*FILES).options
    assert weights(shim) == expected
    assert shim.load() is embedder
    assert embedder.engine is engine
    shim.to_device("cpu", -1)
    assert weights(shim) == expected


def test_options_are_known_before_any_weights_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    shim = BiLMShim(*FILES)
    monkeypatch.setattr("spacy_elmo.models.shim.load_arrays", None)
    assert shim.options == load_bilm(*FILES).options
    assert shim._embedder is None


def test_a_network_owns_the_weights_alone(shim: BiLMShim, expected: dict[str, bytes]) -> None:
    network = shim.unfreeze()
    assert shim.load().bilm is network is shim.unfreeze()
    assert weights(shim) == expected
    assert all(parameter.requires_grad and parameter.numel() for parameter in network.parameters())
    shim.from_bytes(shim.to_bytes())
    dropped = weakref.ref(network)
    del network
    gc.collect()
    assert dropped() is None
    assert weights(shim) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        lambda shim: BiLMShim(*FILES, shim.precision).from_bytes(shim.to_bytes()),
        lambda shim: pickle.loads(pickle.dumps(shim)),
        BiLMShim.copy,
    ],
    ids=["bytes", "pickle", "copy"],
)
def test_saved_and_copied(shim: BiLMShim, expected: dict[str, bytes], way: Callable[[BiLMShim], BiLMShim]) -> None:
    other = way(shim)
    np.testing.assert_array_equal(vectors(other), vectors(shim))
    assert other.compute_fingerprint() == shim.compute_fingerprint()
    assert weights(other) == expected == weights(shim)


@pytest.mark.slow
def test_threads_get_one_engine() -> None:
    shim, barrier = BiLMShim(*FILES), threading.Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: (barrier.wait(60), shim.load().engine)[1], range(4)))
    assert len(set(map(id, found))) == 1


def test_only_methods_end_open_step() -> None:
    """A property changes nothing; whatever needs current weights first applies what a step has gathered."""
    shim, calls = BiLMShim(*FILES), []
    shim.end_step = lambda: calls.append(1)
    assert shim.options.dim
    assert not calls
    state: dict[tuple[int, str], np.ndarray] = {(shim.id, NAME): shim.to_arrays()[NAME]}
    methods: list[Callable[[], object]] = [
        shim.load, shim.unfreeze, shim.to_arrays, shim.to_bytes, shim.compute_fingerprint, shim.copy,
        lambda: shim.finish_update(lambda *_, **__: None), lambda: shim.use_params(state).__enter__(),  # type: ignore
    ]  # fmt: skip
    for method in methods:
        calls.clear()
        method()
        assert calls, method
    calls.clear()
    shim.end_step = None
    shim.load()
    assert not calls


def test_weights_that_came_in_inference_mode_can_be_trained() -> None:
    saved, shim = BiLMShim(*FILES).to_bytes(), BiLMShim(*FILES)
    with torch.inference_mode():
        assert vectors(shim.from_bytes(saved)).any()
    parameters = list(shim.unfreeze().parameters())
    assert all(parameter.requires_grad and not parameter.is_inference() for parameter in parameters)


def test_weights_that_float16_has_exactly_are_saved_in_it() -> None:
    shim = BiLMShim(*map(str, embedded_files()))
    saved = shim.to_bytes()
    assert len(saved) < 2.02 * shim.load().options.n_parameters
    assert weights(BiLMShim(*FILES).from_bytes(saved)) == weights(shim)


def test_torchs_default_device_makes_no_difference(expected: dict[str, bytes]) -> None:
    saved = BiLMShim(*FILES).to_bytes()
    with torch.device("meta"):
        shim = BiLMShim(*FILES).from_bytes(saved)
    assert weights(shim) == expected


@pytest.fixture
def shims() -> list[BiLMShim]:
    """Two, of other weights with the same sizes. Engine and fingerprint of the first were computed from a network."""
    first, second = BiLMShim(*FILES), BiLMShim(*FILES)
    with torch.no_grad():
        second.unfreeze().get_parameter(NAME).mul_(2)
    first.unfreeze()
    assert vectors(first).any()
    assert first.compute_fingerprint() != second.compute_fingerprint()
    return [first, second]


def vectors(shim: BiLMShim) -> np.ndarray:
    return np.concatenate(shim.load().engine.run(SENTENCES), 1)


def assert_like(shim: BiLMShim, other: BiLMShim) -> None:
    """Compare with a shim that has read the other's bytes, and has computed nothing before."""
    fresh = BiLMShim(*FILES).from_bytes(other.to_bytes())
    np.testing.assert_allclose(vectors(shim), vectors(fresh), atol=1e-6)
    assert shim.compute_fingerprint() == fresh.compute_fingerprint()


def test_after_weights_were_loaded(shims: list[BiLMShim]) -> None:
    first, second = shims
    before = vectors(first)
    first.from_bytes(second.to_bytes())
    assert_like(first, second)
    first.unfreeze()
    assert_like(first, second)
    assert np.abs(vectors(first) - before).max() > 1e-3


def test_after_an_update(shims: list[BiLMShim]) -> None:
    """One step of plain SGD: w - rate * gradient."""
    shim, other = shims
    expected = shim.to_arrays()[NAME] - 0.5
    parameter = shim.unfreeze().get_parameter(NAME)
    parameter.grad = torch.ones_like(parameter)
    shim.finish_update(SGD(0.5, L2=0.0, grad_clip=0.0))
    np.testing.assert_allclose(shim.to_arrays()[NAME], expected, atol=1e-6)
    assert parameter.grad is None
    assert_like(shim, other.from_bytes(shim.to_bytes()))


def test_inside_and_after_other_parameters(shims: list[BiLMShim]) -> None:
    shim, other = shims
    before, given = vectors(shim), other.to_arrays()[NAME]
    kept = given.copy()
    with shim.use_params({(shim.id, NAME): given, (shim.id + 10_000, NAME): np.zeros(1)}):
        assert_like(shim, other)
        shim.unfreeze().get_parameter(NAME).data.zero_()
    np.testing.assert_array_equal(given, kept)  # they are the caller's, and stay so
    np.testing.assert_array_equal(vectors(shim), before)
    with pytest.raises(KeyboardInterrupt), shim.use_params({(shim.id, NAME): given}):
        raise KeyboardInterrupt
    np.testing.assert_array_equal(vectors(shim), before)


@pytest.mark.parametrize("precision", ["float32", "auto"])
def test_the_settings_are_those_of_every_engine(precision: Precision) -> None:
    """Of the one for a network, too, as after an update."""
    shim = BiLMShim(*FILES, precision, cached_words=3)
    shim.unfreeze()
    expected = Engine(load_bilm(*FILES), dtype_of(precision, torch.device("cpu")), 3).run(SENTENCES)
    np.testing.assert_array_equal(vectors(shim), np.concatenate(expected, 1))
    assert len(shim.load().engine.words) == 3


def test_copies_have_ids_of_their_own(shims: list[BiLMShim]) -> None:
    """An optimizer stores its state under the id, so that with the same one two copies would share it."""
    assert len({shim.id for shim in (*shims, shims[0].copy(), shims[0].copy())}) == 4


def test_the_fingerprint_depends_on_options_names_and_values() -> None:
    options, a, b = load_bilm(*FILES).options, np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    first = fingerprint_of(options, {"a": a, "b": b})
    others = [
        fingerprint_of(dataclasses.replace(options, proj_clip=None), {"a": a, "b": b}),
        fingerprint_of(options, {"a": b, "b": a}),
        fingerprint_of(options, {"a": a, "c": b}),
        fingerprint_of(options, {"a": a, "b": np.nextafter(b, np.float32(2))}),
    ]
    assert len({first, *others}) == 5
    assert fingerprint_of(options, {"b": b, "a": a}) == first
    assert all(len(each) == 32 and int(each, 16) >= 0 for each in (first, *others))
