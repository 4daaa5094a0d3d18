"""Files compressed by HDF5's filters: every reader gets the same values, from fewer bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from weight_files import assert_same, contents, random_arrays

from spacy_elmo.formats import BiLMOptions, read_weights, write_weights
from spacy_elmo.formats.softmax import adaptive_shapes, read_adaptive, read_softmax, write_adaptive, write_softmax
from spacy_elmo.pretraining.pack import round_mantissas


@pytest.fixture
def larger(options: BiLMOptions) -> BiLMOptions:
    return replace(options, dim=512, projection_dim=128, filters=((1, 32), (3, 64)))


def test_rounded_weights_are_read_bit_for_bit_from_a_smaller_file(tmp_path: Path, larger: BiLMOptions) -> None:
    arrays = {name: round_mantissas(values, 10) for name, values in random_arrays(larger).items()}
    write_weights(tmp_path / "plain.hdf5", larger, arrays)
    write_weights(tmp_path / "packed.hdf5", larger, arrays, compress=True)
    assert_same(read_weights(tmp_path / "packed.hdf5", larger), arrays)
    plain, packed = ((tmp_path / f"{name}.hdf5").stat().st_size for name in ("plain", "packed"))
    assert packed < 0.6 * plain
    assert_same(contents(tmp_path / "packed.hdf5"), contents(tmp_path / "plain.hdf5"))  # as h5py itself reads them


def test_how_the_datasets_are_stored(tmp_path: Path, larger: BiLMOptions) -> None:
    path = tmp_path / "packed.hdf5"
    write_weights(path, larger, random_arrays(larger), compress=True)
    with h5py.File(path) as file:
        matrix = file["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"]
        assert (matrix.dtype, matrix.compression, matrix.shuffle) == (np.dtype("<f4"), "gzip", True)
        assert matrix.chunks == (128, 2048)  # 1 MiB, of 2
        assert file["CNN/b_cnn_0"].chunks is None  # 128 bytes


def test_small_models(tmp_path: Path, options: BiLMOptions) -> None:
    arrays = random_arrays(options)
    write_weights(tmp_path / "packed.hdf5", options, arrays, compress=True)
    assert_same(read_weights(tmp_path / "packed.hdf5", options), arrays)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_softmax(tmp_path: Path, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(0)
    weight, bias = (rng.standard_normal(shape).astype(np.float16).astype(np.float32) for shape in ((5000, 64), 5000))
    for name, compress in (("plain", False), ("packed", True)):
        write_softmax(tmp_path / name, weight, bias, dtype, compress=compress)
    for got, expected in zip(read_softmax(tmp_path / "packed"), (weight, bias)):
        np.testing.assert_array_equal(got, expected)
    assert (tmp_path / "packed").stat().st_size < (tmp_path / "plain").stat().st_size


def test_adaptive_softmax(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shapes = adaptive_shapes(3000, 64, [500, 1500])
    arrays = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    for name, compress in (("plain", False), ("packed", True)):
        write_adaptive(tmp_path / name, [500, 1500], arrays, np.float16, compress=compress)
    cutoffs, got = read_adaptive(tmp_path / "packed")
    assert cutoffs == [500, 1500]
    for name, values in arrays.items():
        np.testing.assert_array_equal(got[name], values)
    assert (tmp_path / "packed").stat().st_size < (tmp_path / "plain").stat().st_size
