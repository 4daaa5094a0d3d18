"""Files of embedded sentences: AllenNLP's layout, round trips, failed writes, damaged files."""

import json
import re
import resource
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats import VectorsWriter, read_vectors

ONES = np.ones((3, 2, 4), np.float32)


def refused(path: Path, *parts: str) -> None:
    with pytest.raises(VectorsError) as error:
        list(read_vectors(path))
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    for part in parts:
        assert part in message, message


def test_layout(vectors: Path) -> None:
    """A dataset without a key is named by the number of sentences before it, and only it is in the index."""
    with VectorsWriter(vectors) as writer:
        for sentence, key in (("a b", None), ("c", "key of c"), ("d e", None), ("a b", None)):
            writer.write(sentence, ONES, key)
    with h5py.File(vectors) as file:
        assert set(file) == {"0", "key of c", "2", "3", "sentence_to_index"}
        assert file["2"].shape == (3, 2, 4)
        assert file["2"].dtype == np.float32
        assert file["sentence_to_index"].shape == (1,)
        # This is how AllenNLP's readers parse it.
        assert json.loads(file["sentence_to_index"][0]) == {"a b": "3", "d e": "2"}


shapes = st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(1, 4)) | st.tuples(
    st.integers(0, 5), st.integers(1, 4)
)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.text('aé東🙂 \0\n"\\', max_size=8) | st.just("\ud800"), shapes), max_size=14))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, drawn: list) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("round_trip") / "vectors.hdf5"
    written = [(sentence, rng.standard_normal(shape).astype(np.float32)) for sentence, shape in drawn]
    with VectorsWriter(path) as writer:
        for sentence, array in written:
            writer.write(sentence, array)
    last = {sentence: i for i, (sentence, _) in enumerate(written)}
    embedded = list(read_vectors(path))
    for i, ((sentence, expected), (got_sentence, got)) in enumerate(zip(written, embedded, strict=True)):
        assert got_sentence == (sentence if last[sentence] == i else None)
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()


def test_public_file_without_an_index(tiny_fixture: Path) -> None:
    embedded = list(read_vectors(tiny_fixture / "lm_embeddings_0.hdf5"))
    assert len(embedded) == 10
    assert all(sentence is None and array.shape[::2] == (2, 16) for sentence, array in embedded)


def test_reading_is_lazy(vectors: Path) -> None:
    with h5py.File(vectors, "a") as file:
        file["1"][0, 0, 0] = np.nan
    reader = read_vectors(vectors)
    assert next(reader)[0] is None
    with pytest.raises(VectorsError, match="the dataset 1 holds 1 values that are NaN"):
        next(reader)


BAD_VECTORS = [
    (np.ones(3), "(3,)"),
    (np.ones((1, 1, 1, 1)), "(1, 1, 1, 1)"),
    (np.full((1, 2), np.nan), "2 values"),
    (np.full((1, 2), 1e300), "2 values"),
    ([["a"]], "float32"),
    ([[1], [1, 2]], "float32"),
    (None, "()"),
]


def test_bad_vectors(tmp_path: Path) -> None:
    for array, part in BAD_VECTORS:
        refusal = pytest.raises(VectorsError, match=f"sentence 0.*{re.escape(part)}")
        with refusal, VectorsWriter(tmp_path / "vectors.hdf5") as writer:
            writer.write("a", array)
        assert list(tmp_path.iterdir()) == []


def test_closed_writer(tmp_path: Path) -> None:
    writer = VectorsWriter(tmp_path / "vectors.hdf5")
    with pytest.raises(VectorsError, match="not open"):
        writer.write("a", ONES)
    with writer:
        writer.write("a", ONES)
    with pytest.raises(VectorsError, match="not open"):
        writer.write("a", ONES)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "the dataset 1 is missing, though the file has 3"),
        (np.ones(3, np.float32), "the dataset 1 has shape (3,)"),
        (np.ones((1, 2), np.float64), "the dataset 1 holds float64"),
        (h5py.SoftLink("/0"), "1 is a link"),
        (h5py.ExternalLink("x.hdf5", "/0"), "1 is a link"),
        (np.full((1, 2), np.inf, np.float32), "the dataset 1 holds 2 values"),
        (lambda file: file.create_group("1"), "1 is a group"),
        (lambda file: file.create_dataset("1", (3, 2**30, 1024), "f4", chunks=(1, 1024, 1024)), "the dataset 1 stores"),
        (lambda file: file.create_dataset("1", (3, 2**20, 1024), "f4"), "the dataset 1 stores 0 bytes"),
    ],
)
def test_bad_dataset(vectors: Path, value: Any, message: str) -> None:
    with h5py.File(vectors, "a") as file:
        del file["1"]
        if callable(value):
            value(file)
        elif value is None:
            file["3"] = ONES
        else:
            file["1"] = value
    refused(vectors, message)


NUMBERS = [0, "3", "x", "-1", "00", "1" * 19, "1" * 5_000, "\u0660"]  # Python reads 4,300 digits at most
TEXTS = ["", "[]", "{", "[" * 100_000, b'{"\xff": "0"}', *(json.dumps({"a b": number}) for number in NUMBERS)]


def test_bad_index(vectors: Path) -> None:
    for text in TEXTS:
        with h5py.File(vectors, "a") as file:
            file["sentence_to_index"][0] = text
        refused(vectors, "sentence_to_index")
    with h5py.File(vectors) as file:  # whose length is changed to 4 GiB
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
    refused(vectors, "can't be read (", "The file is damaged")


NO_NAMES: list[Any] = ["", 3, ".", "a/b", "a\0b", f"a{chr(0xD800)}", f"a{chr(0xDFFF)}"]


def test_keys_that_name_no_dataset(tmp_path: Path) -> None:
    expected = dict.fromkeys(NO_NAMES, r"can't name a dataset: it is not a string, .* Use another key")
    for key, message in (expected | {"same": "^shown.hdf5: the key 'same' was written before"}).items():
        refusal = pytest.raises(VectorsError, match=message)
        with refusal, VectorsWriter(tmp_path / "vectors.hdf5", named="shown.hdf5") as writer:
            writer.write("a", ONES, "same")
            writer.write("b", ONES, key)
        assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_at_the_end_leaves_the_earlier_file(vectors: Path) -> None:
    """HDF5 has small datasets in its buffers until the file is closed."""
    before = vectors.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write() -> None:
        with VectorsWriter(vectors) as writer:
            writer.write("a", ONES)
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))

    try:
        with pytest.raises(VectorsError, match="File too large"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert vectors.read_bytes() == before
    assert list(vectors.parent.iterdir()) == [vectors]


def test_keys_and_no_sentences(tmp_path: Path) -> None:
    with VectorsWriter(tmp_path / "empty.hdf5"):
        pass
    assert list(read_vectors(tmp_path / "empty.hdf5")) == []
    keyed = tmp_path / "keyed.hdf5"
    with VectorsWriter(keyed, index=False) as writer:
        for key in ("東京", "a b"):
            writer.write(key, np.full((2, 4), len(key)), key=key)
    assert [text for text, _ in read_vectors(keyed)] == ["a b", "東京"]
    with h5py.File(keyed, "a") as file:
        file["char_embed"] = np.ones((2, 3), np.float32)
    refused(keyed, "no dataset 0 and no sentence_to_index")
