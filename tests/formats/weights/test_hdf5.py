"""Weight files: the table of datasets, golden files and round trips."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weight_files import W_0, Arrays, assert_same, contents, random_arrays, refused

from spacy_elmo.formats import (
    BiLMOptions,
    expected_parameters,
    parameter_problems,
    read_options,
    read_weights,
    write_weights,
)


def test_table(weights: Path, arrays: Arrays) -> None:
    file = contents(weights)
    np.testing.assert_array_equal(file["char_embed"], arrays["char_cnn.embedding.weight"][1:])
    for i in range(2):
        name = f"char_cnn.convolutions.{i}"
        np.testing.assert_array_equal(file[f"CNN/W_cnn_{i}"][0].transpose(2, 1, 0), arrays[f"{name}.weight"])
        np.testing.assert_array_equal(file[f"CNN/b_cnn_{i}"], arrays[f"{name}.bias"])
    for gate in ("carry", "transform"):
        name = f"char_cnn.highways.0.{gate}"
        np.testing.assert_array_equal(file[f"CNN_high_0/W_{gate}"].T, arrays[f"{name}.weight"])
        np.testing.assert_array_equal(file[f"CNN_high_0/b_{gate}"], arrays[f"{name}.bias"])
    np.testing.assert_array_equal(file["CNN_proj/W_proj"].T, arrays["char_cnn.projection.weight"])
    np.testing.assert_array_equal(file["CNN_proj/b_proj"], arrays["char_cnn.projection.bias"])
    for layer in range(2):
        name = f"lstm.layers.{layer}"
        for direction in range(2):
            group = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            rows = file[f"{group}/W_0"]
            np.testing.assert_array_equal(rows[:5], arrays[f"{name}.input_weight"][direction])
            np.testing.assert_array_equal(rows[5:], arrays[f"{name}.recurrent_weight"][direction])
            np.testing.assert_array_equal(file[f"{group}/B"], arrays[f"{name}.bias"][direction])
            np.testing.assert_array_equal(file[f"{group}/W_P_0"], arrays[f"{name}.projection"][direction])
    assert len(file) == 1 + 2 * 2 + 4 + 2 + 4 * 3


def test_read_back(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    assert_same(read_weights(weights, options), arrays)


def test_plain_datasets(weights: Path, options: BiLMOptions) -> None:
    with h5py.File(weights) as file:
        dataset = file[W_0]
        assert dataset.chunks is None
        assert dataset.dtype == np.dtype("<f4")


@pytest.mark.parametrize("name", ["random_a", "random_b"])
def test_golden(name: str, golden: Path, tmp_path: Path) -> None:
    options = read_options(golden / name / "options.json")
    arrays = read_weights(golden / name / "weights.hdf5", options)
    assert sum(array.size for array in arrays.values()) == options.n_parameters + options.char_dim
    copy = tmp_path / "copy.hdf5"
    write_weights(copy, options, arrays)
    expected, got = contents(golden / name / "weights.hdf5"), contents(copy)
    assert got.keys() == expected.keys()
    for dataset, values in expected.items():
        assert got[dataset].shape == values.shape
        assert got[dataset].tobytes() == values.tobytes()


def test_tiny_fixture(tiny_fixture: Path) -> None:
    options = read_options(tiny_fixture / "options.json")
    arrays = read_weights(tiny_fixture / "lm_weights.hdf5", options)
    assert not parameter_problems(options, {name: array.shape for name, array in arrays.items()})


@st.composite
def small_models(draw: st.DrawFn) -> tuple[BiLMOptions, tuple[str, ...]]:
    filters = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3))
    n_filters = sum(n for _, n in filters)
    projection_dim = n_filters if draw(st.booleans()) else draw(st.integers(1, 6))
    clip = st.none() | st.just(3.0)
    options = BiLMOptions(
        char_dim=draw(st.integers(1, 4)),
        filters=tuple(filters),
        n_highway=draw(st.integers(0, 2)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
        max_characters=draw(st.integers(4, 50)),
        dim=projection_dim + draw(st.integers(0, 3)),
        projection_dim=projection_dim,
        n_layers=draw(st.integers(1, 3)),
        cell_clip=draw(clip),
        proj_clip=draw(clip),
        use_skip_connections=draw(st.booleans()),
    )
    # A file may have projections that the sizes do not require.
    optional = ("char_cnn.projection.weight", "lstm.layers.0.projection")
    return options, tuple(draw(st.sets(st.sampled_from(optional))))


@settings(max_examples=40, deadline=None)
@given(small_models(), st.integers(0, 2**31))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, model: tuple, seed: int) -> None:
    options, extra = model
    arrays = random_arrays(options, extra, seed)
    path = tmp_path_factory.mktemp("round_trip") / "weights.hdf5"
    write_weights(path, options, arrays)
    assert_same(read_weights(path, options), arrays)


SQUARE = BiLMOptions(2, ((1, 2), (2, 3)), 0, "tanh", 20, 5, 5, 2, None, None, False)


def test_no_projections() -> None:
    names = expected_parameters(SQUARE)
    assert not any("projection" in name for name in names)
    with_lstm = expected_parameters(SQUARE, ["lstm.layers.1.projection"])
    assert with_lstm["lstm.layers.0.projection"] == (2, 5, 5)
    assert "char_cnn.projection.weight" not in with_lstm
    assert expected_parameters(SQUARE, ["char_cnn.projection.bias"])["char_cnn.projection.weight"] == (5, 5)


@pytest.mark.parametrize(
    ("extra", "dataset"),
    [
        ("lstm.layers.0.projection", "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_P_0"),
        ("char_cnn.projection.weight", "CNN_proj/b_proj"),
    ],
)
def test_incomplete_optional_projections(extra: str, dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    write_weights(path, SQUARE, random_arrays(SQUARE, (extra,)))
    with h5py.File(path, "a") as file:
        del file[dataset]
    refused(path, SQUARE, dataset, "all or none")
