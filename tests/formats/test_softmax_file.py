"""softmax.hdf5 of a full softmax: round trips in both types, and bad files and arrays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.hdf5 import MAX_BYTES, check_dataset, check_storage
from spacy_elmo.formats.softmax import check_softmax_dataset, read_softmax, write_softmax

Floats = np.ndarray


@pytest.fixture
def arrays() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((7, 4)).astype(np.float32), rng.standard_normal(7).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path, arrays: tuple[Floats, Floats]) -> Path:
    write_softmax(tmp_path / "softmax.hdf5", *arrays)
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


def test_float32_is_read_bit_for_bit(path: Path, arrays: tuple[Floats, Floats]) -> None:
    for got, expected in zip(read_softmax(path), arrays):
        assert got.dtype == np.float32
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()


def test_the_file_holds_two_plain_datasets(path: Path, arrays: tuple[Floats, Floats]) -> None:
    with h5py.File(path) as file:
        assert list(file) == ["softmax"]
        assert list(file["softmax"]) == ["W", "b"]
        for item in (file, file["softmax"], file["softmax/W"], file["softmax/b"]):
            assert len(item.attrs) == 0
        assert file["softmax/W"].dtype == file["softmax/b"].dtype == np.dtype("<f4")
        np.testing.assert_array_equal(file["softmax/W"][...], arrays[0])
        np.testing.assert_array_equal(file["softmax/b"][...], arrays[1])


def test_float16_is_rounded_once_and_read_as_float32(path: Path, arrays: tuple[Floats, Floats]) -> None:
    write_softmax(path, *arrays, dtype=np.float16)
    with h5py.File(path) as file:
        assert file["softmax/W"].dtype == file["softmax/b"].dtype == np.dtype("<f2")
    for got, expected in zip(read_softmax(path), arrays):
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, expected.astype(np.float16).astype(np.float32))
        np.testing.assert_allclose(got, expected, rtol=2**-11)


@pytest.mark.parametrize(
    ("dtype", "how"),
    [(">f4", {}), (">f2", {}), ("<f2", {"compression": "gzip", "shuffle": True}), ("<f4", {"chunks": (2, 3)})],
)
def test_other_ways_to_store(path: Path, arrays: tuple[Floats, Floats], dtype: str, how: dict) -> None:
    replaced(path, "softmax/W", arrays[0].astype(dtype), **how)
    weight, _ = read_softmax(path)
    np.testing.assert_array_equal(weight, arrays[0].astype(dtype).astype(np.float32))


@pytest.mark.parametrize("name", ["softmax/W", "softmax/b"])
def test_missing_datasets_are_named(path: Path, name: str) -> None:
    with h5py.File(path, "a") as file:
        del file[name]
    refused(path, f"missing datasets: {name}.")


def test_weights_of_a_bilm_are_refused(golden: Path) -> None:
    refused(golden / "random_a" / "weights.hdf5", "missing datasets: softmax/W, softmax/b", "CNN_proj")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("softmax/W", np.zeros((6, 4), np.float32)),
        ("softmax/W", np.zeros(7, np.float32)),
        ("softmax/W", np.zeros((7, 0), np.float32)),
        ("softmax/W", np.zeros((7, 4, 1), np.float32)),
        ("softmax/W", h5py.Empty(np.float32)),
        ("softmax/b", np.zeros((7, 1), np.float32)),
        ("softmax/b", np.float32(0)),
    ],
)
def test_shapes(path: Path, name: str, values: object) -> None:
    replaced(path, name, values)
    refused(path, "Expected (words, projection_dim) and (words,)")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((7, 4), np.float64), "holds float64"),
        (np.zeros((7, 4), np.int16), "holds int16"),
        (np.full((7, 4), np.nan, np.float32), "28 values that are NaN or infinite"),
        (np.full((7, 4), np.inf, np.float16), "28 values that are NaN or infinite"),
    ],
)
def test_values(path: Path, values: Floats, message: str) -> None:
    replaced(path, "softmax/W", values)
    refused(path, "softmax/W", message)


def test_a_float16_dataset_that_was_never_filled(path: Path) -> None:
    with h5py.File(path, "a") as file:
        del file["softmax/W"]
        file.create_dataset("softmax/W", (7, 4), "<f2")
    refused(path, "stores 0 bytes for 56 bytes")


def test_a_link_is_not_followed(path: Path) -> None:
    with h5py.File(path, "a") as file:
        file.move("softmax/W", "elsewhere")
        file["softmax/W"] = h5py.SoftLink("/elsewhere")
    refused(path, "softmax/W is a link")


@pytest.mark.parametrize("spoil", [lambda data: b"", lambda data: b"text\n", lambda data: data[: len(data) // 2]])
def test_files_that_are_not_hdf5_or_cut_short(path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path.write_bytes(spoil(path.read_bytes()))
    refused(path, "not an HDF5 file, or one cut short")


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_more_memory_than_allowed(path: Path, dtype: type[np.floating]) -> None:
    """The values are float32 in memory, whatever the file has."""
    n_bytes = 4 * (9000 * 32 + 9000)
    write_softmax(path, np.zeros((9000, 32), np.float32), np.zeros(9000, np.float32), dtype, compress=True)
    assert 4 * path.stat().st_size < n_bytes
    assert not any(values.any() for values in read_softmax(path, n_bytes))
    with pytest.raises(WeightsError, match=f"the softmax would take {n_bytes:,} bytes of memory"):
        read_softmax(path, n_bytes - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_allowed_memory_holds_for_each_dataset(
    path: Path, dtype: type[np.floating], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit above the usual one must reach the checks of the datasets. Here the usual one is a byte, for speed."""
    write_softmax(path, np.zeros((9000, 32), np.float32), np.zeros(9000, np.float32), dtype, compress=True)
    for check in (check_softmax_dataset, check_dataset, check_storage):
        *others, usual = check.__defaults__ or ()
        assert usual == MAX_BYTES
        monkeypatch.setattr(check, "__defaults__", (*others, 1))
    with h5py.File(path) as file, pytest.raises(WeightsError, match=r"would take .* bytes of memory"):
        check_softmax_dataset(file["softmax/W"], "softmax/W")
    assert read_softmax(path, 2 * MAX_BYTES)[0].shape == (9000, 32)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    refused(tmp_path / "missing.hdf5", "no such file. Expected the softmax.hdf5 of a biLM")
    refused(tmp_path, "a folder or a special file")


def test_files_cut_at_any_length_give_a_weights_error(path: Path, arrays: tuple[Floats, Floats]) -> None:
    write_softmax(path, *arrays, dtype=np.float16)
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        refused(path)


def test_damaged_bytes_give_finite_values_or_a_weights_error(path: Path, arrays: tuple[Floats, Floats]) -> None:
    write_softmax(path, *arrays, dtype=np.float16)
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for position in rng.integers(0, len(content), 3):
            damaged[position] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            weight, bias = read_softmax(path)
        except WeightsError:
            continue
        assert len(weight) == len(bias)
        assert np.isfinite(weight).all()


def test_a_refused_write_leaves_the_old_file(path: Path, arrays: tuple[Floats, Floats]) -> None:
    weight, bias = arrays
    before = path.read_bytes()
    large, bad = np.full((7, 4), 65_520, np.float32), bias.copy()  # 65,504 is the largest float16
    bad[3] = np.nan
    refusals = [
        ((weight, bias[:-1]), {}, r"not written: softmax/W has shape \(7, 4\) and softmax/b \(6,\)"),
        ((weight, bad), {}, r"softmax/b has 1 values that are NaN.*float32"),
        ((large, bias), {"dtype": np.float16}, r"softmax/W has 28 values.*too large for float16"),
        ((weight, bias), {"dtype": np.float64}, "dtype is float64"),
        ((weight.astype(np.int64), bias), {}, "softmax/W is int64"),
    ]
    for values, how, message in refusals:
        with pytest.raises(WeightsError, match=message):
            write_softmax(path, *values, **how)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_write_without_a_folder(tmp_path: Path, arrays: tuple[Floats, Floats]) -> None:
    with pytest.raises(WeightsError, match=r"the folder .*missing does not exist"):
        write_softmax(tmp_path / "missing" / "softmax.hdf5", *arrays)
