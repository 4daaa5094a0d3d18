"""Helpers for tests of weight files: random arrays, comparisons, and damaged files."""

from __future__ import annotations

import struct
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
    """Random parameters. extra: names of optional projections to include."""
    rng = np.random.default_rng(seed)
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in expected_parameters(options, extra).items()
    }
    arrays["char_cnn.embedding.weight"][0] = 0
    return arrays


def assert_same(got: Arrays, expected: Arrays) -> None:
    assert set(got) == set(expected)
    for name, array in expected.items():
        assert got[name].dtype == np.float32, name
        assert got[name].flags.c_contiguous, name
        assert got[name].shape == array.shape, name
        assert got[name].tobytes() == array.tobytes(), name


def contents(path: Path) -> Arrays:
    """All datasets of a file by path."""
    datasets: Arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: datasets.update({name: item[...]} if hasattr(item, "shape") else {}))
    return datasets


def refused(path: Path, options: BiLMOptions, *parts: str) -> str:
    """Assert that reading fails with a message that has the file and all `parts` in it. Returns the message."""
    with pytest.raises(WeightsError) as error:
        read_weights(path, options)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    for part in parts:
        assert part in message, message
    return message


def make_heap_cycle(path: Path, number: int = 0) -> None:
    """Let the list of free blocks in a local heap point to its own first block: HDF5 then walks it without end.

    number: of the heap in the file, each of which belongs to a group.
    """
    content = bytearray(path.read_bytes())
    at = -1
    for _ in range(number + 1):
        at = content.index(b"HEAP", at + 1)
    size, free, data = struct.unpack_from("<QQQ", content, at + 8)
    assert free < size
    struct.pack_into("<Q", content, data + free, free)
    path.write_bytes(content)


def rewrite(path: Path, name: str, dtype: str = "<f4", **how: object) -> None:
    """Store the values of a dataset in another way. how: arguments of h5py's create_dataset."""
    with h5py.File(path, "a") as file:
        values = file[name][...]
        del file[name]
        file.create_dataset(name, data=values.astype(dtype), **how)


def rewrite_as(path: Path, make: Callable[[h5py.File, np.ndarray], object], name: str = W_0) -> None:
    """Replace the dataset or group `name` by what `make` creates.

    make: a function of the open file and of random values with the shape of W_0.
    """
    with h5py.File(path, "a") as file:
        values = np.random.default_rng(1).standard_normal((10, 32)).astype(np.float32)
        del file[name]
        make(file, values)
