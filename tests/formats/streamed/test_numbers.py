"""One-dimensional .npy files that are written number by number."""

from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.formats.arrays import StreamedArray


@pytest.mark.parametrize(("typecode", "dtype"), [("i", np.int32), ("q", np.int64)])
@pytest.mark.parametrize("n", [0, 1, 65_536, 65_537, 200_000])
def test_numpy_reads_it(typecode: str, dtype: type, n: int, tmp_path: Path) -> None:
    with StreamedArray(tmp_path / "a.npy", typecode) as array:
        for number in range(n):
            array.append(number * 7 - 3)
    read = np.load(tmp_path / "a.npy", allow_pickle=False)
    assert read.dtype == dtype
    np.testing.assert_array_equal(read, np.arange(n, dtype=np.int64) * 7 - 3)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_a_number_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OverflowError), StreamedArray(tmp_path / "a.npy", "i") as array:
        array.append(2**31)
    assert not list(tmp_path.iterdir())
