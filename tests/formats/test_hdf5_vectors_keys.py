"""Names of the datasets of embedded sentences, as h5py itself finds them, and writers that are used again."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats import VectorsWriter, read_vectors


def rows(value: float) -> np.ndarray:
    return np.full((2, 3), value, np.float32)


def test_keys_and_numbers_in_one_file(tmp_path: Path) -> None:
    """A dataset without a key is named by the number of sentences before it, and only it is in the index."""
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        writer.write("a b", rows(0))
        writer.write("c", rows(1), key="key of c")
        writer.write("d", rows(2))
    with h5py.File(path) as file:
        assert {name: file[name][0, 0] for name in file if name != "sentence_to_index"} == {
            "0": 0,
            "key of c": 1,
            "2": 2,
        }
        assert json.loads(file["sentence_to_index"][0]) == {"a b": "0", "d": "2"}


def test_a_writer_that_is_used_again_begins_again(tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    writer = VectorsWriter(path)
    for sentence, value in (("first", 1), ("second", 2)):
        with writer:
            writer.write(sentence, rows(value))
        with h5py.File(path) as file:
            assert sorted(file) == ["0", "sentence_to_index"]
            assert (file["0"][...] == value).all()
            assert json.loads(file["sentence_to_index"][0]) == {sentence: "0"}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "empty"),
        (3, "not a string"),
        (".", "a single dot"),
        ("a/b", "a slash"),
        ("a\0b", "NUL"),
        (f"a{chr(0xD800)}", "surrogate"),
        (f"a{chr(0xDFFF)}", "surrogate"),
    ],
)
def test_keys_that_name_no_dataset(tmp_path: Path, key: Any, reason: str) -> None:
    with pytest.raises(VectorsError, match=reason), VectorsWriter(tmp_path / "vectors.hdf5") as writer:
        writer.write("a", rows(0), key=key)
    assert not list(tmp_path.iterdir())


def test_keys_that_only_look_odd(tmp_path: Path) -> None:
    """The characters beside the surrogates too. The names in the file are the keys."""
    keys = ["..", ". .", " ", "\ud7ff", "\ue000", "-1", "\u0663"]
    with VectorsWriter(tmp_path / "vectors.hdf5", index=False) as writer:
        for number, key in enumerate(keys):
            writer.write(key, rows(number), key=key)
    with h5py.File(tmp_path / "vectors.hdf5") as file:
        assert {name: file[name][0, 0] for name in file} == {key: i for i, key in enumerate(keys)}


def test_a_key_that_is_in_the_file_already(tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"

    def write_twice() -> None:
        with VectorsWriter(path, named="shown.hdf5") as writer:
            writer.write("a", rows(0), key="same")
            writer.write("b", rows(1), key="same")

    with pytest.raises(VectorsError) as error:
        write_twice()
    assert "shown.hdf5" in str(error.value)
    assert "'same'" in str(error.value)
    assert str(path) not in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("index", ["0" * 2, "1" * 19, "1" * 5_000, "\u0660"])
def test_an_index_with_odd_numbers(vectors: Path, index: str) -> None:
    """Python refuses to read integers of more than 4,300 digits, with an error of its own."""
    with h5py.File(vectors, "a") as file:
        file["sentence_to_index"][0] = json.dumps({"a b": index})
    with pytest.raises(VectorsError, match="sentence_to_index"):
        list(read_vectors(vectors))


def test_links_and_other_shapes_are_no_keyed_sentences(tmp_path: Path) -> None:
    """A file whose datasets are not all embedded sentences is refused, even if most of them could be some."""
    odd = {
        "link": h5py.SoftLink("/a b"),
        "external": h5py.ExternalLink("vectors.hdf5", "/a b"),
        "char_embed": rows(1),
        "one row": np.ones(3, np.float32),
    }
    path = tmp_path / "vectors.hdf5"
    for name, value in odd.items():
        with h5py.File(path, "w") as file:
            file["a b"] = rows(0)
        assert [text for text, _ in read_vectors(path)] == ["a b"]
        with h5py.File(path, "a") as file:
            file[name] = value
        with pytest.raises(VectorsError, match="no dataset 0 and no sentence_to_index"):
            list(read_vectors(path))


def test_a_disk_that_is_full_at_the_end_leaves_the_earlier_file(vectors: Path) -> None:
    """HDF5 has small datasets in its buffers until the file is closed."""
    before = vectors.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write() -> None:
        with VectorsWriter(vectors) as writer:
            writer.write("a", rows(1))
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))

    try:
        with pytest.raises(VectorsError, match="File too large"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert vectors.read_bytes() == before
    assert list(vectors.parent.iterdir()) == [vectors]
