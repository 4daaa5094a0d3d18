"""What an HDF5 file is and holds: kinds, facts and shapes."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import WeightsError
from spacy_elmo.formats.contents import is_hdf5, kind_of, matrices_in, vectors_in
from spacy_elmo.formats.softmax import write_softmax

MATRICES = ["char_embed", "CNN_proj/W_proj", "CNN/W_cnn_0", "CNN/W_cnn_1"]
MATRICES += ["CNN_high_0/W_carry", "CNN_high_0/W_transform"]
MATRICES += [f"RNN_{d}/RNN/MultiRNNCell/Cell{k}/LSTMCell/W{p}_0" for d in "01" for k in "01" for p in ("", "_P")]


def test_kinds_and_facts(weights: Path, vectors: Path, tmp_path: Path) -> None:
    softmax = tmp_path / "softmax.hdf5"
    write_softmax(softmax, {"weight": np.ones((7, 4), "f4"), "bias": np.zeros(7, "f4")})
    kinds = {weights: "weights", vectors: "vectors", softmax: "softmax"}
    assert {path: kind_of(path) for path in kinds} == kinds
    assert vectors_in(vectors) == (3, (3, 2, 4), False, True)
    found = matrices_in(weights)
    assert {name for name, _ in found} == set(MATRICES)
    with h5py.File(weights) as file:
        assert all(file[name].shape == shape for name, shape in found)
    for path in kinds:
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(WeightsError, match="cut short"):
            kind_of(path)


def test_what_is_no_hdf5(tmp_path: Path, weights: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(512) + weights.read_bytes())  # where HDF5 looks for it, too
    assert is_hdf5(path)
    for content in (b"", b"\x89HDF", bytes(3000)):
        path.write_bytes(content)
        assert not is_hdf5(path)
    assert not is_hdf5(tmp_path)
    assert not is_hdf5(tmp_path / "gone")
