"""What is in an HDF5 file of a stranger: kinds, facts and softmaxes; the slow tests read in a process of its own."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
from reading import read_here
from weight_files import make_heap_cycle

from spacy_elmo.errors import ElmoError, VectorsError, WeightsError
from spacy_elmo.formats.contents import ask_kind, ask_output_layer, ask_shapes, ask_vectors, check, is_hdf5
from spacy_elmo.formats.softmax import adaptive_shapes, read_softmax, write_softmax

CELLS = [f"RNN_{d}/RNN/MultiRNNCell/Cell{{}}/LSTMCell/{name}" for d in range(2) for name in ("W_0", "W_P_0")]
MAIN = ["char_embed", "CNN_proj/W_proj", "CNN/W_cnn_0", "CNN/W_cnn_1", "CNN_high_0/W_carry"]
MAIN += [cell.format(k) for cell in CELLS for k in range(2)]


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    weight = np.random.default_rng(0).standard_normal((7, 4)).astype("f4")
    write_softmax(tmp_path / "softmax.hdf5", {"weight": weight, "bias": np.zeros(7, "f4")}, dtype=np.float16)
    return tmp_path / "softmax.hdf5"


@pytest.fixture
def adaptive(tmp_path: Path) -> Path:
    path = tmp_path / "adaptive.hdf5"
    rng = np.random.default_rng(0)
    shapes = adaptive_shapes(9, 16, [3, 5])
    write_softmax(path, {name: rng.standard_normal(shape).astype("f4") for name, shape in shapes.items()}, [3, 5])
    return path


def test_kinds(weights: Path, vectors: Path, softmax: Path, adaptive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_here(monkeypatch)
    kinds = {weights: "weights", vectors: "vectors", softmax: "softmax", adaptive: "softmax"}
    assert {path: ask_kind(path) for path in kinds} == kinds


def test_softmaxes(softmax: Path, adaptive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_here(monkeypatch)
    for path, cutoffs in ((softmax, None), (adaptive, [3, 5])):
        got, expected = ask_output_layer(path), read_softmax(path)
        assert got[0] == expected[0] == cutoffs
        assert got[1].keys() == expected[1].keys()
        for name, values in expected[1].items():
            assert got[1][name].tobytes() == values.tobytes()
            assert got[1][name].shape == values.shape


def test_facts(weights: Path, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_here(monkeypatch)
    assert ask_vectors(vectors) == (3, (3, 2, 4), False, True)
    with h5py.File(weights) as file:
        assert ask_shapes(weights) == [(name, file[name].shape) for name in MAIN]


@pytest.mark.slow
def test_more_memory_than_allowed(softmax: Path) -> None:
    write_softmax(softmax, {"weight": np.zeros((3000, 100), "f4"), "bias": np.zeros(3000, "f4")}, compress=True)
    for read in (read_softmax, ask_output_layer):
        with pytest.raises(WeightsError, match=r"the softmax would take 1,212,000 bytes .* at most 1,211,999"):
            read(softmax, 1_211_999)
        assert read(softmax, 1_212_000)[1]["weight"].shape == (3000, 100)


@pytest.mark.slow
def test_vectors_that_unpack_to_gigabytes(vectors: Path) -> None:
    """3 GiB in chunks of 1 MiB, each of zeros."""
    with h5py.File(vectors, "a") as file:
        del file["1"]
        dataset = file.create_dataset("1", (3, 2**10, 2**18), "f4", chunks=(1, 1, 2**18), compression="gzip")
        packed = zlib.compress(bytes(2**20))
        for place in itertools.product(range(3), range(2**10), [0]):
            dataset.id.write_direct_chunk(place, packed)
    with pytest.raises(VectorsError, match="the dataset 1 would take 3,221,225,472 bytes of memory"):
        ask_vectors(vectors)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["weights", "vectors", "softmax", "adaptive"])
def test_a_list_of_free_blocks_without_end(kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    assert check(path) == kind.replace("adaptive", "softmax")
    make_heap_cycle(path)
    with pytest.raises(ElmoError, match="get it again"):
        check(path)


def test_the_signature(tmp_path: Path, weights: Path) -> None:
    path = tmp_path / "file"
    for start, found in ((0, True), (8, False), (512, True), (1024, True), (1536, False), (4096, True)):
        path.write_bytes(bytes(start) + weights.read_bytes())
        assert is_hdf5(path) == found == h5py.is_hdf5(path)
    for content in (b"", b"\x89HDF", bytes(3000)):
        path.write_bytes(content)
        assert not is_hdf5(path)
    assert not is_hdf5(tmp_path)
    assert not is_hdf5(tmp_path / "gone")
