"""Helpers of the tests of weight files: random arrays, comparisons, and files put together wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats import BiLMOptions, expected_parameters, read_weights

Arrays = dict[str, np.ndarray]
CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"
W_0 = f"{CELL}/W_0"


def random_arrays(options: BiLMOptions, extra: tuple[str, ...] = (), seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    made = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in expected_parameters(options, extra).items()
    }
    made["char_cnn.embedding.weight"][0] = 0
    return made


def assert_same(got: Arrays, expected: Arrays) -> None:
    assert set(got) == set(expected)
    for name, array in expected.items():
        assert got[name].dtype == np.float32, name
        assert got[name].flags.c_contiguous, name
        assert got[name].shape == array.shape, name
        assert got[name].tobytes() == array.tobytes(), name


def contents(path: Path) -> Arrays:
    found: Arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[...]} if hasattr(item, "shape") else {}))
    return found


def refused(path: Path, options: BiLMOptions, *parts: str) -> str:
    """Assert that reading fails with an error that names the file and the given parts; return it."""
    with pytest.raises(WeightsError) as error:
        read_weights(path, options)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    for part in parts:
        assert part in message, message
    return message


def rewrite(path: Path, name: str, dtype: str = "<f4", **how: object) -> None:
    with h5py.File(path, "a") as file:
        values = file[name][...]
        del file[name]
        file.create_dataset(name, data=values.astype(dtype), **how)


def rewrite_as(path: Path, make: Callable[[h5py.File, np.ndarray], object], name: str = W_0) -> None:
    """Put something else in the place of a dataset or group; `make` gets the file and the values of W_0's kind."""
    with h5py.File(path, "a") as file:
        values = np.random.default_rng(1).standard_normal((10, 32)).astype(np.float32)
        del file[name]
        make(file, values)
