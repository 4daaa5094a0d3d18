"""Files of embedded sentences: AllenNLP's layout, round trips and failed writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats import VectorsWriter, read_vectors

ONES = np.ones((3, 2, 4), np.float32)


def test_layout(vectors: Path) -> None:
    with h5py.File(vectors) as file:
        assert set(file) == {"0", "1", "2", "sentence_to_index"}
        assert file["1"].shape == (3, 2, 4)
        assert file["1"].dtype == np.float32
        assert file["sentence_to_index"].shape == (1,)
        # This is how AllenNLP's readers parse it.
        assert json.loads(file["sentence_to_index"][0]) == {"a b": "2", "c d": "1"}


def test_read_back(vectors: Path) -> None:
    embedded = list(read_vectors(vectors))
    assert [sentence for sentence, _ in embedded] == [None, "c d", "a b"]
    for i, (_, array) in enumerate(embedded):
        np.testing.assert_array_equal(array, i * ONES)
        assert array.dtype == np.float32


shapes = st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(1, 4)) | st.tuples(
    st.integers(0, 5), st.integers(1, 4)
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=8), shapes), max_size=14))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, drawn: list) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("round_trip") / "vectors.hdf5"
    written = [(sentence, rng.standard_normal(shape).astype(np.float32)) for sentence, shape in drawn]
    with VectorsWriter(path) as writer:
        for sentence, array in written:
            writer.write(sentence, array)
    last = {sentence: i for i, (sentence, _) in enumerate(written)}
    embedded = list(read_vectors(path))
    assert len(embedded) == len(written)
    for i, ((sentence, expected), (got_sentence, got)) in enumerate(zip(written, embedded, strict=True)):
        assert got_sentence == (sentence if last[sentence] == i else None)
        assert got.shape == expected.shape
        assert got.tobytes() == expected.tobytes()


def test_datasets_named_by_their_sentences(tmp_path: Path) -> None:
    with VectorsWriter(tmp_path / "x.hdf5", index=False) as writer:
        for k, sentence in enumerate(("b c .", "a")):
            writer.write(sentence, np.full((3, 2, 4), k), key=sentence)
    embedded = dict(read_vectors(tmp_path / "x.hdf5"))
    assert list(embedded) == ["a", "b c ."]
    assert (embedded["a"] == 1).all()


def test_texts_that_break_writers(tmp_path: Path) -> None:
    texts = ["", "\0", "a\nb\tc", "\ud800", "naïve 東京 🙂", '"quoted" \\', "sentence_to_index", "0"]
    with VectorsWriter(tmp_path / "vectors.hdf5") as writer:
        for text in texts:
            writer.write(text, ONES)
    assert [text for text, _ in read_vectors(tmp_path / "vectors.hdf5")] == texts


def test_lists_and_other_types_are_converted(tmp_path: Path) -> None:
    with VectorsWriter(tmp_path / "vectors.hdf5") as writer:
        writer.write("a", [[1, 2]])
        writer.write("b", np.ones((1, 2), np.float64))
    assert [array.tolist() for _, array in read_vectors(tmp_path / "vectors.hdf5")] == [[[1, 2]], [[1, 1]]]


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


@pytest.mark.parametrize(("array", "part"), BAD_VECTORS, ids=str)
def test_bad_vectors(tmp_path: Path, array: object, part: str) -> None:
    with pytest.raises(VectorsError) as error, VectorsWriter(tmp_path / "vectors.hdf5") as writer:
        writer.write("a", array)
    assert part in str(error.value)
    assert "sentence 0" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_bad_sentence_and_closed_writer(tmp_path: Path) -> None:
    writer = VectorsWriter(tmp_path / "vectors.hdf5")
    with pytest.raises(VectorsError, match="not open"):
        writer.write("a", ONES)
    with writer, pytest.raises(VectorsError, match="the sentence is 3"):
        writer.write(3, ONES)
    with pytest.raises(VectorsError, match="not open"):
        writer.write("a", ONES)


def test_an_error_in_the_block_leaves_nothing(vectors: Path) -> None:
    before = vectors.read_bytes()

    def write_and_fail(error: type[BaseException]) -> None:
        with VectorsWriter(vectors) as writer:
            writer.write("new", ONES)
            raise error("from the block")

    for error in (KeyError, OSError, KeyboardInterrupt):
        with pytest.raises(error, match="from the block"):
            write_and_fail(error)
        assert vectors.read_bytes() == before
        assert list(vectors.parent.iterdir()) == [vectors]


def test_the_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        writer.write("a", ONES)
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]


def test_failed_writes(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = vectors.read_bytes()

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    for owner, name in ((h5py.Group, "create_dataset"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            with pytest.raises(VectorsError, match="No space left"), VectorsWriter(vectors) as writer:
                writer.write("a", ONES)
        assert vectors.read_bytes() == before
        assert list(vectors.parent.iterdir()) == [vectors]


def test_write_without_a_folder(tmp_path: Path) -> None:
    for path, match in ((tmp_path / "no" / "x.hdf5", "does not exist"), (tmp_path, "it is a folder")):
        with pytest.raises(VectorsError, match=match), VectorsWriter(path):
            pass
