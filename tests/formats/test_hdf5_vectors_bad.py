"""Files of embedded sentences that are damaged, incomplete or something else."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats import read_vectors


def refused(path: Path, *parts: str) -> None:
    with pytest.raises(VectorsError) as error:
        list(read_vectors(path))
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    for part in parts:
        assert part in message, message


def test_files_that_hold_no_vectors(tmp_path: Path) -> None:
    refused(tmp_path / "none.hdf5", "no such file", "embedded sentences")
    refused(tmp_path, "a folder")
    path = tmp_path / "vectors.hdf5"
    path.write_bytes(b"not HDF5")
    refused(path, "not an HDF5 file")
    with h5py.File(path, "w") as file:
        file["char_embed"] = np.ones((3, 2, 4), np.float32)
    refused(path, "no dataset 0 and no sentence_to_index")


def test_cut_short(vectors: Path) -> None:
    content = vectors.read_bytes()
    vectors.write_bytes(content[: len(content) // 2])
    refused(vectors, "cut short")


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (np.ones(3, np.float32), "(3,)"),
        (np.ones((1, 2), np.float64), "float64"),
        (h5py.SoftLink("/0"), "a link"),
        (h5py.ExternalLink("x.hdf5", "/0"), "a link"),
        (np.full((1, 2), np.inf, np.float32), "2 values"),
    ],
    ids=str,
)
def test_bad_dataset(vectors: Path, value: object, part: str) -> None:
    with h5py.File(vectors, "a") as file:
        del file["1"]
        file["1"] = value
    refused(vectors, "1", part)


def test_group_missing_number_and_missing_values(vectors: Path) -> None:
    with h5py.File(vectors, "a") as file:
        del file["1"]
    refused(vectors, "1")
    with h5py.File(vectors, "a") as file:
        file.create_group("1")
    refused(vectors, "1 is a group")
    with h5py.File(vectors, "a") as file:
        del file["1"]
        file.create_dataset("1", (3, 2**30, 1024), "f4", chunks=(1, 1024, 1024))
    refused(vectors, "the dataset 1")
    with h5py.File(vectors, "a") as file:
        del file["1"]
        file.create_dataset("1", (3, 2**20, 1024), "f4")
    refused(vectors, "the dataset 1 stores 0 bytes")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "[" * 100_000, '{"a b": 0}', '{"a b": "3"}', '{"a b": "x"}', '{"a b": "-1"}', '{"a": "00"}'],
    ids=lambda text: text[:12],
)
def test_bad_index(vectors: Path, text: str) -> None:
    with h5py.File(vectors, "a") as file:
        file["sentence_to_index"][0] = text
    refused(vectors, "sentence_to_index")


@pytest.mark.parametrize("value", [np.ones(1), np.array([b"{}"]), np.ones((2, 2))], ids=str)
def test_index_of_another_type(vectors: Path, value: object) -> None:
    with h5py.File(vectors, "a") as file:
        del file["sentence_to_index"]
        file["sentence_to_index"] = value
    refused(vectors, "sentence_to_index", "Expected one string")


def test_index_that_is_not_utf8(vectors: Path) -> None:
    with h5py.File(vectors, "a") as file:
        file["sentence_to_index"][0] = b'{"\xff": "0"}'
    refused(vectors, "sentence_to_index")


def test_index_that_claims_to_be_long(vectors: Path) -> None:
    with h5py.File(vectors) as file:
        offset = file["sentence_to_index"].id.get_offset()
    content = bytearray(vectors.read_bytes())
    content[offset : offset + 4] = b"\xff\xff\xff\xff"
    vectors.write_bytes(content)
    refused(vectors, "sentence_to_index", f"{2**32 - 1:,}")


def test_dataset_beyond_the_end(vectors: Path) -> None:
    with h5py.File(vectors) as file:
        offset = file["1"].id.get_offset()
    content = vectors.read_bytes()
    address = offset.to_bytes(8, "little")
    assert content.count(address) == 1
    vectors.write_bytes(content.replace(address, (2**40).to_bytes(8, "little")))
    refused(vectors, "1", "The file is damaged")
