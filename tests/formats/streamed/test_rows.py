"""Two-dimensional .npy files that are written part by part."""

from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.formats.arrays import StreamedRows, read_npy


@pytest.mark.parametrize("parts", [[], [0], [1], [3, 0, 4], [1] * 20])
@pytest.mark.parametrize("width", [1, 7, 1024])
def test_numpy_and_the_strict_reader_read_it(parts: list[int], width: int, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(sum(parts), width)).astype(np.float32)
    with StreamedRows(tmp_path / "a.npy", np.float16, width) as file:
        for part in np.split(rows, np.cumsum(parts)[:-1]) if parts else []:
            file.append(part)
        assert file.n == len(rows)
    for read in (np.load(tmp_path / "a.npy", allow_pickle=False), read_npy(tmp_path / "a.npy", np.float16, width)):
        np.testing.assert_array_equal(read, rows.astype(np.float16), strict=True)
    np.save(tmp_path / "b.npy", rows.astype(np.float16))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_rows_that_are_not_in_one_piece(tmp_path: Path) -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    with StreamedRows(tmp_path / "a.npy", np.float32, 3) as file:
        file.append(table.T)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), table.T)


def test_other_shapes_are_refused(tmp_path: Path) -> None:
    for shape in ((3,), (2, 4), (2, 3, 1)):
        with pytest.raises(ValueError, match="rows of shape"), StreamedRows(tmp_path / "a.npy", "f2", 3) as file:
            file.append(np.zeros(shape, np.float32))


def test_a_block_that_raises_leaves_no_file_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows of shape"), StreamedRows(tmp_path / "a.npy", "f2", 3) as file:
        file.append(np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match=r"not an \.npy file"):
        read_npy(tmp_path / "a.npy", np.float16, 3)
