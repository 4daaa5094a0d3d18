"""softmax.hdf5 of an adaptive softmax: round trips in both types, and bad files and arrays."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.softmax import adaptive_shapes, holds_adaptive, read_adaptive, write_adaptive, write_softmax

Arrays = dict[str, np.ndarray]
CUTOFFS = [4, 9]
# A projection_dim of 18 and 12 words: 4 frequent words, 5 words of width 18 // 4, and 3 words of width 18 // 16.
SHAPES = {
    "weight": (6, 18),
    "bias": (6,),
    "down.0": (4, 18),
    "words.0": (5, 4),
    "down.1": (1, 18),
    "words.1": (3, 1),
}


@pytest.fixture
def arrays() -> Arrays:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


@pytest.fixture
def path(tmp_path: Path, arrays: Arrays) -> Path:
    write_adaptive(tmp_path / "softmax.hdf5", CUTOFFS, arrays)
    return tmp_path / "softmax.hdf5"


def refused(path: Path, *parts: str) -> None:
    with pytest.raises(WeightsError) as caught:
        read_adaptive(path)
    for part in (f"{path}: ", *parts):
        assert part in str(caught.value)


def replaced(path: Path, name: str, values: object) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
        file.create_dataset(name, data=values)


def test_shapes() -> None:
    assert adaptive_shapes(12, 18, CUTOFFS) == SHAPES


def test_float32_is_read_bit_for_bit(path: Path, arrays: Arrays) -> None:
    cutoffs, got = read_adaptive(path)
    assert cutoffs == CUTOFFS
    assert got.keys() == arrays.keys()
    for name, values in got.items():
        assert values.dtype == np.float32
        assert values.shape == arrays[name].shape
        assert values.tobytes() == arrays[name].tobytes()


def test_the_file_holds_plain_datasets(path: Path, arrays: Arrays) -> None:
    with h5py.File(path) as file:
        assert list(file) == ["adaptive"]
        assert sorted(file["adaptive"]) == ["bias", "cutoffs", "down", "weight", "words"]
        assert file["adaptive/cutoffs"][...].tolist() == CUTOFFS
        assert file["adaptive/cutoffs"].dtype == np.dtype("<i8")
        for name, values in arrays.items():
            dataset = file[f"adaptive/{name.replace('.', '/')}"]
            assert dataset.dtype == np.dtype("<f4")
            np.testing.assert_array_equal(dataset[...], values)


def test_float16_is_rounded_once_and_read_as_float32(path: Path, arrays: Arrays) -> None:
    write_adaptive(path, CUTOFFS, arrays, dtype=np.float16)
    with h5py.File(path) as file:
        assert file["adaptive/words/0"].dtype == np.dtype("<f2")
    for name, values in read_adaptive(path)[1].items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, arrays[name].astype(np.float16).astype(np.float32))


def test_holds_adaptive(path: Path, tmp_path: Path) -> None:
    write_softmax(tmp_path / "other.hdf5", np.zeros((3, 2), np.float32), np.zeros(3, np.float32))
    assert holds_adaptive(path)
    assert not holds_adaptive(tmp_path / "other.hdf5")
    for bad in (b"", b"text\n", path.read_bytes()[:300]):
        path.write_bytes(bad)
        with pytest.raises(WeightsError, match="not an HDF5 file, or one cut short"):
            holds_adaptive(path)
    with pytest.raises(WeightsError, match=r"no such file. Expected the softmax\.hdf5 of a biLM"):
        holds_adaptive(tmp_path / "missing.hdf5")


@pytest.mark.parametrize("name", ["cutoffs", *SHAPES])
def test_missing_datasets_are_named(path: Path, name: str) -> None:
    dataset = f"adaptive/{name.replace('.', '/')}"
    with h5py.File(path, "a") as file:
        del file[dataset]
    refused(path, f"missing datasets: {dataset}.")


@pytest.mark.parametrize("name", ["adaptive/down/2", "adaptive/words/2"])
def test_a_dataset_beyond_the_clusters(path: Path, name: str) -> None:
    with h5py.File(path, "a") as file:
        file[name] = np.zeros((1, 1), np.float32)
    refused(path, f"{name} is beyond the clusters")


def test_cutoffs_in_the_other_byte_order(path: Path) -> None:
    replaced(path, "adaptive/cutoffs", np.array(CUTOFFS, ">i8"))
    assert read_adaptive(path)[0] == CUTOFFS


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_more_memory_than_allowed(path: Path, dtype: type[np.floating]) -> None:
    """The values are float32 in memory, whatever the file has."""
    shapes = {"weight": (1001, 64), "bias": (1001,), "down.0": (16, 64), "words.0": (9000, 16)}
    n_bytes = 4 * (1001 * 64 + 1001 + 16 * 64 + 9000 * 16)
    zeros = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    write_adaptive(path, [1000], zeros, dtype, compress=True)
    assert 4 * path.stat().st_size < n_bytes
    assert not any(values.any() for values in read_adaptive(path, n_bytes)[1].values())
    with pytest.raises(WeightsError, match=f"the softmax would take {n_bytes:,} bytes of memory"):
        read_adaptive(path, n_bytes - 1)


def test_two_kinds_of_softmax(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file["softmax/W"] = np.zeros((3, 2), np.float32)
    refused(path, "holds both softmax and adaptive")


@pytest.mark.parametrize(
    "cutoffs",
    [
        np.array([9, 4]),
        np.array([4, 4]),
        np.array([0, 9]),
        np.array([-3, 9]),
        np.zeros((0,), np.int64),
        np.zeros((1, 2), np.int64),
        np.arange(1, 18),
        np.int64(4),
        np.array([4.0, 9.0]),
        np.array([4, 9], np.uint64),
        h5py.Empty(np.int64),
    ],
    ids=repr,
)
def test_bad_cutoffs(path: Path, cutoffs: object) -> None:
    replaced(path, "adaptive/cutoffs", cutoffs)
    refused(path, "adaptive/cutoffs is ", "Expected up to 16 numbers of int64")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("cutoffs", np.array([4, 10]), "adaptive/words/0 has shape (5, 4), expected (6, 4)"),
        ("cutoffs", np.array([2**62, 2**63 - 1]), "adaptive/weight has shape (6, 18)"),
        ("cutoffs", np.array([5]), "adaptive/down/1 is beyond the clusters"),
        ("weight", np.zeros((5, 18), np.float32), "adaptive/weight has shape (5, 18), expected (6, 18)"),
        ("weight", np.zeros((6, 16), np.float32), "adaptive/down/0 has shape (4, 18), expected (4, 16)"),
        ("weight", np.zeros((6, 15), np.float32), "adaptive/down/1 has shape (1, 18), expected (0, 15)"),
        ("weight", np.zeros(6, np.float32), "adaptive/weight has shape (6,)"),
        ("bias", np.zeros(4, np.float32), "adaptive/bias has shape (4,), expected (6,)"),
        ("words/1", np.zeros((0, 1), np.float32), "adaptive/words/1 has shape (0, 1)"),
        ("words/1", np.zeros((3, 2), np.float32), "adaptive/words/1 has shape (3, 2), expected (3, 1)"),
        ("words/1", h5py.Empty(np.float32), "adaptive/words/1 has shape None"),
    ],
)
def test_shapes_that_do_not_fit_each_other(path: Path, name: str, values: object, message: str) -> None:
    replaced(path, f"adaptive/{name}", values)
    refused(path, message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((6, 18), np.float64), "holds float64"),
        (np.full((6, 18), np.nan, np.float32), "108 values that are NaN or infinite"),
    ],
)
def test_values(path: Path, values: np.ndarray, message: str) -> None:
    replaced(path, "adaptive/weight", values)
    refused(path, "adaptive/weight", message)


def test_a_link_is_not_followed(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file.move("adaptive/cutoffs", "elsewhere")
        file["adaptive/cutoffs"] = h5py.SoftLink("/elsewhere")
    refused(path, "adaptive/cutoffs is a link")


def test_files_cut_at_any_length_give_a_weights_error(path: Path) -> None:
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        refused(path)


def test_damaged_bytes_give_finite_values_or_a_weights_error(path: Path) -> None:
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for position in rng.integers(0, len(content), 3):
            damaged[position] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            if not holds_adaptive(path):
                continue
            cutoffs, got = read_adaptive(path)
        except WeightsError:
            continue
        n_words = cutoffs[-1] + len(got[f"words.{len(cutoffs) - 1}"])
        assert {name: values.shape for name, values in got.items()} == adaptive_shapes(n_words, 18, cutoffs)
        assert all(np.isfinite(values).all() for values in got.values())


def test_a_refused_write_leaves_the_old_file(path: Path, arrays: Arrays) -> None:
    before = path.read_bytes()
    bad = arrays | {"words.1": np.array([[0.0], [np.nan], [0.0]], np.float32)}
    large = arrays | {"bias": np.full(6, 65_520, np.float32)}  # 65,504 is the largest float16
    refusals = [
        (([4, 8], arrays), {}, r"not written: the arrays.*words/0 has shape \(5, 4\), expected \(4, 4\)"),
        ((CUTOFFS, arrays | {"words.2": arrays["words.1"]}), {}, r"words/2 has shape \(3, 1\), expected None"),
        ((CUTOFFS, bad), {}, "adaptive/words/1 has 1 values that are NaN.*float32"),
        ((CUTOFFS, large), {"dtype": np.float16}, "adaptive/bias has 6 values.*too large for float16"),
        ((CUTOFFS, arrays), {"dtype": np.float64}, "dtype is float64"),
        ((CUTOFFS, arrays | {"bias": np.zeros(6, np.int64)}), {}, "adaptive/bias is int64"),
    ]
    for values, how, message in refusals:
        with pytest.raises(WeightsError, match=message):
            write_adaptive(path, *values, **how)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
