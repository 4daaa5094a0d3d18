"""softmax.hdf5: round trips in both types, and bad files and arrays."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.softmax import read_softmax, write_softmax

Arrays = dict[str, np.ndarray]
DATASETS = {"weight": "softmax/W", "bias": "softmax/b"}


@pytest.fixture
def arrays() -> Arrays:
    rng = np.random.default_rng(0)
    return {"weight": rng.standard_normal((7, 4), np.float32), "bias": rng.standard_normal(7, np.float32)}


@pytest.fixture
def path(tmp_path: Path, arrays: Arrays) -> Path:
    write_softmax(tmp_path / "softmax.hdf5", arrays)
    return tmp_path / "softmax.hdf5"


def refused(path: Path, *parts: str) -> None:
    with pytest.raises(WeightsError) as caught:
        read_softmax(path)
    for part in (f"{path}: ", *parts):
        assert part in str(caught.value)


def replaced(path: Path, name: str, values: object, **how: object) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        file.create_dataset(name, data=values, **how)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("compress", [False, True])
def test_what_was_written_is_read(path: Path, arrays: Arrays, dtype: Any, compress: bool) -> None:
    """As float32, rounded once if the file has float16. The file holds plain datasets."""
    write_softmax(path, arrays, dtype, compress=compress)
    got = read_softmax(path)
    assert got.keys() == arrays.keys()
    found: list[str] = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
        for name, values in arrays.items():
            expected = values.astype(dtype)
            stored = file[DATASETS[name]]
            assert stored.dtype == np.dtype(dtype).newbyteorder("<")
            assert not stored.attrs
            np.testing.assert_array_equal(stored[...], expected)
            assert got[name].dtype == np.float32
            assert got[name].shape == values.shape
            assert got[name].tobytes() == expected.astype(np.float32).tobytes()
    assert sorted(found) == sorted(DATASETS.values())


def test_a_file_without_a_softmax(golden: Path) -> None:
    refused(golden / "random_a" / "weights.hdf5", "missing datasets: softmax/W, softmax/b", "CNN_proj")


def test_an_adaptive_softmax_of_an_earlier_version(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["adaptive/cutoffs"] = np.array([4, 9])
    refused(path, "an adaptive softmax, which was removed", "softmax/W", "training.frozen_tokens", "version 0.1.0")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("softmax/W", np.zeros((6, 4), np.float32)),
        ("softmax/W", np.zeros(7, np.float32)),
        ("softmax/W", h5py.Empty(np.float32)),
        ("softmax/b", np.zeros((7, 1), np.float32)),
        ("softmax/b", np.float32(0)),
    ],
)
def test_shapes(path: Path, name: str, values: object) -> None:
    replaced(path, name, values)
    refused(path, "Expected (words, projection_dim) and (words,)")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.float64(0), "holds float64"),
        (np.int16(0), "holds int16"),
        (np.float32("nan"), "values that are NaN or infinite"),
        (np.float16("inf"), "values that are NaN or infinite"),
    ],
)
def test_values(path: Path, value: np.generic, message: str) -> None:
    replaced(path, "softmax/W", np.full((7, 4), value))
    refused(path, "softmax/W", message)


NAN, LARGE = np.float32("nan"), np.float32(65_520)  # 65,504 is the largest float16


@pytest.mark.parametrize(
    ("changes", "dtype", "message"),
    [
        ({"bias": np.zeros(6, "f4")}, "f4", r"not written: .*softmax/b has shape \(6,\), expected \(7,\)"),
        ({"bias": np.array([0, 0, 0, NAN, 0, 0, 0])}, "f4", r"softmax/b has 1 values that are NaN.*float32"),
        ({"weight": np.full((7, 4), LARGE)}, "f2", r"softmax/W has 28 values.*too large for float16"),
    ],
)
def test_a_refused_write_leaves_the_old_file(
    path: Path, arrays: Arrays, changes: Arrays, dtype: str, message: str
) -> None:
    before = path.read_bytes()
    with pytest.raises(WeightsError, match=message):
        write_softmax(path, arrays | changes, dtype)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
