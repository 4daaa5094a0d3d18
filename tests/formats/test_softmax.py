"""softmax.hdf5 of both kinds: round trips in both types, and bad files and arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.softmax import adaptive_shapes, read_softmax, write_softmax

Arrays = dict[str, np.ndarray]
# A projection_dim of 18 and 12 words: 4 frequent words, 5 words of width 18 // 4, and 3 words of width 18 // 16.
CUTOFFS = [4, 9]
ADAPTIVE = {"weight": (6, 18), "bias": (6,), "down.0": (4, 18), "words.0": (5, 4), "down.1": (1, 18), "words.1": (3, 1)}
SHAPES = {"full": {"weight": (7, 4), "bias": (7,)}, "adaptive": ADAPTIVE}
FULL = {"weight": "softmax/W", "bias": "softmax/b"}


@pytest.fixture(params=SHAPES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def arrays(kind: str) -> Arrays:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES[kind].items()}


@pytest.fixture
def path(tmp_path: Path, kind: str, arrays: Arrays) -> Path:
    write(tmp_path / "softmax.hdf5", kind, arrays)
    return tmp_path / "softmax.hdf5"


def write(path: Path, kind: str, arrays: Arrays, **how: Any) -> None:
    write_softmax(path, arrays, **({"cutoffs": CUTOFFS if kind == "adaptive" else None} | how))


def dataset(kind: str, name: str) -> str:
    return FULL[name] if kind == "full" else f"adaptive/{name.replace('.', '/')}"


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
def test_what_was_written_is_read(path: Path, kind: str, arrays: Arrays, dtype: Any, compress: bool) -> None:
    """As float32, rounded once if the file has float16. The file holds plain datasets."""
    write(path, kind, arrays, dtype=dtype, compress=compress)
    cutoffs, got = read_softmax(path)
    assert got.keys() == arrays.keys()
    found: list[str] = []
    with h5py.File(path) as file:
        assert list(file) == ["softmax" if kind == "full" else "adaptive"]
        file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
        for name, values in arrays.items():
            expected = values.astype(dtype)
            stored = file[dataset(kind, name)]
            assert stored.dtype == np.dtype(dtype).newbyteorder("<")
            assert not stored.attrs
            np.testing.assert_array_equal(stored[...], expected)
            assert got[name].dtype == np.float32
            assert got[name].shape == values.shape
            assert got[name].tobytes() == expected.astype(np.float32).tobytes()
        if kind == "adaptive":
            assert file["adaptive/cutoffs"][...].tolist() == cutoffs == CUTOFFS
            assert file["adaptive/cutoffs"].dtype == np.dtype("<i8")
            assert adaptive_shapes(12, 18, CUTOFFS) == ADAPTIVE
        else:
            assert cutoffs is None
    assert len(found) == len(arrays) + (kind == "adaptive")


def test_a_file_without_a_softmax(golden: Path) -> None:
    refused(golden / "random_a" / "weights.hdf5", "missing datasets: softmax/W, softmax/b", "CNN_proj")


def test_missing_datasets_are_named(path: Path, kind: str, arrays: Arrays) -> None:
    content = path.read_bytes()
    for name in [*arrays, *(["cutoffs"] if kind == "adaptive" else [])]:
        path.write_bytes(content)
        with h5py.File(path, "a") as file:
            del file[dataset(kind, name)]
        refused(path, f"missing datasets: {dataset(kind, name)}.")


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
@pytest.mark.parametrize("kind", ["full"], indirect=True)
def test_shapes_of_a_full_softmax(path: Path, name: str, values: object) -> None:
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
def test_values(path: Path, kind: str, value: np.generic, message: str) -> None:
    name = dataset(kind, next(iter(SHAPES[kind])))
    replaced(path, name, np.full(next(iter(SHAPES[kind].values())), value))
    refused(path, name, message)


NAN, LARGE = np.float32("nan"), np.float32(65_520)  # 65,504 is the largest float16


@pytest.mark.parametrize(
    ("kind", "changes", "how", "message"),
    [
        ("full", {"bias": np.zeros(6, "f4")}, {}, r"not written: .*softmax/b has shape \(6,\), expected \(7,\)"),
        ("full", {"bias": np.array([0, 0, 0, NAN, 0, 0, 0])}, {}, r"softmax/b has 1 values that are NaN.*float32"),
        (
            "full",
            {"weight": np.full((7, 4), LARGE)},
            {"dtype": "f2"},
            r"softmax/W has 28 values.*too large for float16",
        ),
        ("adaptive", {}, {"cutoffs": [4, 8]}, r"not written: the .*words/0 has shape \(5, 4\), expected \(4, 4\)"),
        ("adaptive", {"words.2": np.zeros((3, 1), "f4")}, {}, r"words/2 has shape \(3, 1\), expected None"),
        ("adaptive", {"words.1": np.array([[0.0], [NAN], [0.0]])}, {}, "adaptive/words/1 has 1 values that are NaN"),
        ("adaptive", {"bias": np.full(6, LARGE)}, {"dtype": np.float16}, "adaptive/bias has 6 values.*float16"),
    ],
)
def test_a_refused_write_leaves_the_old_file(
    path: Path, kind: str, arrays: Arrays, changes: Arrays, how: dict[str, Any], message: str
) -> None:
    before = path.read_bytes()
    with pytest.raises(WeightsError, match=message):
        write(path, kind, arrays | changes, **how)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# What only an adaptive softmax has
only_adaptive = pytest.mark.parametrize("kind", ["adaptive"], indirect=True)


@only_adaptive
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("adaptive/down/2", "adaptive/down/2 has shape (1, 1), expected None"),
        ("adaptive/words/2", "adaptive/words/2 has shape (1, 1), expected None"),
    ],
)
def test_a_dataset_too_many(path: Path, name: str, message: str) -> None:
    with h5py.File(path, "a") as file:
        file[name] = np.zeros((1, 1), np.float32)
    refused(path, message)


@only_adaptive
@pytest.mark.parametrize(
    "cutoffs",
    [
        np.array([9, 4]),
        np.array([0, 9]),
        np.zeros((0,), np.int64),
        np.arange(1, 18),
        np.int64(4),
        np.array([4.0, 9.0]),
        h5py.Empty(np.int64),
    ],
    ids=repr,
)
def test_bad_cutoffs(path: Path, cutoffs: object) -> None:
    replaced(path, "adaptive/cutoffs", cutoffs)
    refused(path, "adaptive/cutoffs is ", "Expected up to 16 numbers of int64")


@only_adaptive
@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("cutoffs", np.array([4, 10]), "adaptive/words/0 has shape (5, 4), expected (6, 4)"),
        ("cutoffs", np.array([2**62, 2**63 - 1]), "adaptive/weight has shape (6, 18)"),
        ("cutoffs", np.array([5]), "adaptive/down/1 has shape (1, 18), expected None"),
        ("weight", np.zeros((5, 18), np.float32), "adaptive/weight has shape (5, 18), expected (6, 18)"),
        ("weight", np.zeros((6, 15), np.float32), "adaptive/down/1 has shape (1, 18), expected (0, 15)"),
        ("bias", np.zeros(4, np.float32), "adaptive/bias has shape (4,), expected (6,)"),
        ("words/1", np.zeros((3, 2), np.float32), "adaptive/words/1 has shape (3, 2), expected (3, 1)"),
        ("words/1", h5py.Empty(np.float32), "adaptive/words/1 has shape None"),
    ],
)
def test_shapes_that_do_not_fit_each_other(path: Path, name: str, values: object, message: str) -> None:
    replaced(path, f"adaptive/{name}", values)
    refused(path, message)
