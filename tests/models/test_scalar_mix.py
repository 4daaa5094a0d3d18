"""The mix as a Thinc layer: values against plain float64 numpy and torch, gradients by finite differences."""

from typing import Any

import numpy as np
import pytest
from thinc.api import Adam, set_dropout_rate

from spacy_elmo.errors import SettingsError
from spacy_elmo.models.scalar_mix import build_scalar_mix

NORMS = ("none", "token", "batch")


def docs(seed: int = 0, lengths: tuple[int, ...] = (3, 1, 0, 5), layers: int = 3, width: int = 4) -> list[Any]:
    """Layers of docs; the second token of the first and the last of the last are whitespace: all zero."""
    random = np.random.default_rng(seed)
    X = [random.normal(1, 2, (layers, length, width)).astype("f") for length in lengths]
    X[0][:, 1] = 0
    X[-1][:, -1] = 0
    return X


def expected(X: list[Any], w: Any, gamma: float, norm: str) -> list[Any]:
    """The formula in float64, token by token."""
    s = np.exp(np.asarray(w, np.float64)) / np.exp(np.asarray(w, np.float64)).sum()
    layers = np.concatenate(X, axis=1).astype(np.float64)
    words = layers.any(axis=(0, 2))
    if norm == "batch":
        for layer in layers:
            values = layer[words]
            layer[words] = (values - values.mean()) / np.sqrt(values.var() + 1e-12)
    elif norm == "token":
        for layer in layers:
            for row in np.flatnonzero(words):
                layer[row] = (layer[row] - layer[row].mean()) / np.sqrt(layer[row].var() + 1e-12)
    mixed = gamma * sum(weight * layer for weight, layer in zip(s, layers))
    return np.split(mixed, np.cumsum([x.shape[1] for x in X])[:-1])


@pytest.mark.parametrize("norm", NORMS)
def test_values(norm: Any) -> None:
    X = docs()
    mix = build_scalar_mix(layer_norm=norm, scalar_mix_parameters=[0.3, -1.0, 0.8], gamma=1.7)
    for got, want in zip(mix.predict(X), expected(X, [0.3, -1.0, 0.8], 1.7, norm)):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, atol=2e-6)
    assert not mix.predict(X)[0][1].any()


@pytest.mark.parametrize("norm", ["token", "batch"])
def test_epsilon_of_bilm_tf(norm: Any) -> None:
    """`tf.nn.batch_normalization(x, mean, variance, None, None, 1E-12)`, on values whose variance is as small."""
    X = [(x * 1e-6).astype("f") for x in docs()]
    got = build_scalar_mix(layer_norm=norm, scalar_mix_parameters=[0.0, 0.0, -1e10]).predict(X)
    for one, want in zip(got, expected(X, [0.0, 0.0, -1e10], 1.0, norm)):
        np.testing.assert_allclose(one, want, atol=1e-5)
    assert 0.3 < np.abs(got[0]).max() < 3


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_by_finite_differences(norm: Any) -> None:
    X, w, gamma = docs(1), np.array([0.3, -1.0, 0.8]), 1.7
    random = np.random.default_rng(2)
    dY = [random.normal(size=x.shape[1:]).astype("f") for x in X]
    mix = build_scalar_mix(layer_norm=norm, scalar_mix_parameters=w.tolist(), gamma=gamma)
    _, backprop = mix.begin_update(X)
    dX = backprop(dY)

    def loss(X: list[Any], w: Any, gamma: float) -> float:
        return float(sum((y * d).sum() for y, d in zip(expected(X, w, gamma, norm), dY)))

    step = 1e-5
    for k in range(3):
        change = step * np.eye(3)[k]
        slope = (loss(X, w + change, gamma) - loss(X, w - change, gamma)) / (2 * step)
        assert mix.get_grad("w")[k] == pytest.approx(slope, rel=1e-4, abs=1e-4)
    slope = (loss(X, w, gamma + step) - loss(X, w, gamma - step)) / (2 * step)
    assert mix.get_grad("gamma")[0] == pytest.approx(slope, rel=1e-4)
    for i, x in enumerate(X):
        assert dX[i].shape == x.shape
        for place in np.ndindex(*x.shape):
            if not x[:, place[1]].any():
                continue  # whitespace: its layers are no variables
            up, down = ([y.astype(np.float64) for y in X] for _ in range(2))
            up[i][place] += step
            down[i][place] -= step
            slope = (loss(up, w, gamma) - loss(down, w, gamma)) / (2 * step)
            assert dX[i][place] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_l2_once_per_update() -> None:
    X, w = docs(), np.array([0.5, -1.0, 2.0], "f")
    dY = [np.ones(x.shape[1:], "f") for x in X]
    plain, with_l2 = (build_scalar_mix(scalar_mix_parameters=w.tolist(), l2=l2) for l2 in (0.0, 0.25))
    optimizer = Adam(0.0, L2=0.0)  # so that w stays and the next update compares
    for _ in range(2):  # updates
        for _ in range(3):  # batches whose gradients are gathered
            for mix in (plain, with_l2):
                mix.begin_update(X)[1](dY)
        np.testing.assert_allclose(with_l2.get_grad("w") - plain.get_grad("w"), 2 * 0.25 * w, atol=1e-4)
        for mix in (plain, with_l2):
            mix.finish_update(optimizer)


def test_dropout_is_on_the_result_in_training_alone() -> None:
    X = [np.ones((3, 200, 50), "f")]
    mix = build_scalar_mix(layers=3, dropout=0.25)
    set_dropout_rate(mix, 0.9)  # what spaCy does with [training] dropout
    assert (mix.predict(X)[0] == 1).all()
    Y, backprop = mix.begin_update(X)
    zeros = Y[0] == 0
    assert 0.23 < zeros.mean() < 0.27
    np.testing.assert_allclose(Y[0][~zeros], 1 / 0.75, rtol=1e-6)
    dX = backprop([np.ones((200, 50), "f")])[0]
    assert (dX[0][zeros] == 0).all()
    np.testing.assert_allclose(dX[0][~zeros], 1 / 3 / 0.75, rtol=1e-5)


def test_top_layer_only_is_not_trained() -> None:
    X = docs()
    mix = build_scalar_mix(scalar_mix_parameters=[-1e10, -1e10, 0.0], trainable=False, l2=1.0)
    Y, backprop = mix.begin_update(X)
    for y, x in zip(Y, X):
        np.testing.assert_array_equal(y, x[2])
    dX = backprop(Y)
    assert not mix.has_grad("w")
    assert not mix.has_grad("gamma")
    np.testing.assert_array_equal(dX[0][2], Y[0])
    assert not dX[0][:2].any()


def test_a_source_that_does_not_know_its_layers_yet() -> None:
    mix = build_scalar_mix()
    zeros = [np.zeros((0, 2, 4), "f")]
    mix.initialize(X=zeros)
    assert mix.predict(zeros)[0].shape == (2, 4)
    assert mix.has_param("w") is None
    for layers in (3, 5):
        X = docs(layers=layers)
        mix.initialize(X=X)
        assert (mix.get_param("w").shape, mix.get_dim("nO")) == ((layers,), 4)
        np.testing.assert_allclose(mix.predict(X)[0], X[0].mean(0), atol=1e-6)


def test_no_docs_and_empty_docs() -> None:
    mix = build_scalar_mix(layers=3)
    Y, backprop = mix.begin_update([])
    assert Y == backprop([]) == []
    Y, backprop = mix.begin_update([np.zeros((3, 0, 4), "f")])
    assert Y[0].shape == (0, 4)
    assert backprop(Y)[0].shape == (3, 0, 4)


def test_saved_parameters_and_settings_of_the_config() -> None:
    mix = build_scalar_mix(scalar_mix_parameters=np.array([1, 0, -2]), gamma=2.0, dropout=0.5)
    loaded = build_scalar_mix(dropout=0.1).from_bytes(mix.to_bytes())
    assert loaded.attrs["settings"].dropout == 0.1
    mix.set_param("w", mix.ops.asarray1f([9.0, 9.0, 9.0]))
    mix.initialize(X=docs())  # it starts again
    for one in (mix, loaded):
        assert one.get_param("w").tolist() == [1.0, 0.0, -2.0]
        assert one.get_param("gamma").tolist() == [2.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers is 0"),
        ({"layer_norm": "layer"}, 'Expected "none", "batch" or "token"'),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"dropout": "0.1"}, "dropout is '0.1'. Expected a number"),
        ({"l2": -1.0}, "l2 is -1.0"),
        ({"l2": 10**400}, "l2 is 1000"),
        ({"gamma": float("inf")}, "gamma is inf"),
        ({"gamma": 1e300}, r"gamma is 1e\+300"),
        ({"gamma": True}, "gamma is True"),
        ({"scalar_mix_parameters": [0.0, float("-inf")]}, "finite"),
        ({"scalar_mix_parameters": []}, "has 0 weights"),
        ({"scalar_mix_parameters": [0.0, 1.0], "layers": 3}, "has 2 weights, but layers is 3"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build_scalar_mix(**settings)


def test_bad_input() -> None:
    with pytest.raises(SettingsError, match=r"got 4 layers\. Expected 3: the number in its setting layers"):
        build_scalar_mix(layers=3).predict(docs(layers=4))
    with pytest.raises(SettingsError, match=r"Expected \(layers, tokens, width\)"):
        build_scalar_mix(layers=3).predict([np.zeros((5, 4), "f")])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("w", [[-1e10, -1e10, 0.0], [-90.0, -745.0, 0.0], [500.0, 499.0, -500.0]])
def test_weights_next_to_zero_raise_nothing(norm: Any, w: list[float]) -> None:
    X = docs()
    mix = build_scalar_mix(layer_norm=norm, scalar_mix_parameters=w, gamma=1e-2, l2=0.1)
    with np.errstate(all="raise"):
        Y, backprop = mix(X, is_train=True)
        dX = backprop([1e-30 * y for y in Y])
    for got, want in zip(Y, expected(X, w, 1e-2, norm)):
        np.testing.assert_allclose(got, want, atol=2e-6)
    assert all(np.isfinite(dx).all() for dx in dX)
