"""Files of numpy.save are read as numpy.load reads them; anything else is refused before memory is used.

They have one dimension, or rows.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.formats.arrays import read_npy

NUMBERS = np.arange(-3, 4, dtype=np.int64)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", NUMBERS)
    return tmp_path / "a.npy"


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("numbers", [range(0), range(1), range(-5, 100_000)])
def test_what_numpy_saves_is_read(numbers: range, dtype: type, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(numbers, dtype))
    np.testing.assert_array_equal(read_npy(tmp_path / "a.npy", dtype), np.load(tmp_path / "a.npy"), strict=True)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 3)])
def test_rows(shape: tuple[int, int], tmp_path: Path) -> None:
    rows = np.arange(shape[0] * shape[1], dtype=np.float16).reshape(shape)
    np.save(tmp_path / "a.npy", rows)
    np.testing.assert_array_equal(read_npy(tmp_path / "a.npy", np.float16, shape[1]), rows, strict=True)
    with pytest.raises(ValueError, match=r"a\.npy has the shape"):
        read_npy(tmp_path / "a.npy", np.float16, shape[1] + 1)


@pytest.mark.parametrize("array", [NUMBERS, np.zeros((2, 3, 7), np.int64), np.zeros((7, 2), np.int64, order="F")])
def test_what_has_no_rows(array: np.ndarray, path: Path) -> None:
    np.save(path, array)
    with pytest.raises(ValueError, match=r"a\.npy has"):
        read_npy(path, np.int64, 7)


def test_slices_of_arrays_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(12, dtype=np.int64)[::3])
    assert read_npy(tmp_path / "a.npy", np.int64).tolist() == [0, 3, 6, 9]


def test_it_is_mapped_and_read_only(path: Path) -> None:
    array = read_npy(path, np.int64)
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable


@pytest.mark.parametrize(
    "array",
    [np.zeros(3), np.zeros(3, np.int32), np.zeros(3, ">i8"), np.zeros((3, 1), np.int64), np.int64(3), np.array(["a"])],
)
def test_other_types_and_shapes(array: np.ndarray, path: Path) -> None:
    np.save(path, array)
    with pytest.raises(ValueError, match=r"a\.npy has"):
        read_npy(path, np.int64)


def with_header(header: bytes, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


HEADER = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%s,), }\n"


@pytest.mark.parametrize("shape", [b"2, 0", b"2, 03", b"2, 999999999", b"2, 9999999999", b"2, -3", b"2, 3, 1", b"2,3"])
def test_hostile_rows(shape: bytes, path: Path) -> None:
    path.write_bytes(with_header(HEADER.replace(b"%s,", b"%s") % shape, bytes(48)))
    with pytest.raises(ValueError, match=r"^a\.npy "):
        read_npy(path, np.int64, 3)
    path.write_bytes(with_header(HEADER.replace(b"%s,", b"%s") % b"2, 3", bytes(47)))
    with pytest.raises(ValueError, match="its header says"):
        read_npy(path, np.int64, 3)


@pytest.mark.parametrize(
    "content",
    [
        with_header(b"(" * 60_000),  # Python's parser would raise a RecursionError or MemoryError
        with_header(b"{'descr': '''"),  # a TokenError
        with_header(b"{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }\n", bytes(8)),
        with_header(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"cos\nsystem\n(S'true'\ntR."),
        with_header(HEADER % b"999999999999999999"),  # 8 exabytes
        with_header(HEADER % b"99999999999999999999999", bytes(8)),
        with_header(HEADER % b"-1", bytes(8)),
        with_header(HEADER % b"01", bytes(8)),
        with_header(HEADER % b"1", bytes(16)),
        with_header(HEADER % b"1", bytes(8), version=b"\2\0"),
        with_header(HEADER % b"1")[:20],
        b"PK\3\4" + bytes(100),  # numpy.load would open it as a zip file
        b"\x93NUMPY\1\0",
        b"",
    ],
)
def test_damaged_and_hostile_files(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^a\.npy "):
        read_npy(path, np.int64)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(ValueError, match="special file"):
            read_npy(tmp_path / name, np.int64)
    with pytest.raises(OSError, match="nothing"):
        read_npy(tmp_path / "nothing", np.int64)
