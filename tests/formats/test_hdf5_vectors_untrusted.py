"""Embedded sentences of strangers, read in processes of their own."""

from __future__ import annotations

import struct
from pathlib import Path

import h5py
import numpy as np
import pytest
from weight_files import make_heap_cycle

from spacy_elmo.errors import VectorsError
from spacy_elmo.formats import VectorsWriter, read_vectors
from spacy_elmo.formats import untrusted as process
from spacy_elmo.formats import vectors as module


def assert_same(path: Path) -> None:
    expected, got = list(read_vectors(path)), list(read_vectors(path, untrusted=True))
    assert [text for text, _ in got] == [text for text, _ in expected]
    for (_, array), (_, same) in zip(expected, got, strict=True):
        assert array.dtype == same.dtype == np.float32
        assert array.shape == same.shape
        assert array.tobytes() == same.tobytes()


def test_the_same_sentences(vectors: Path, tmp_path: Path) -> None:
    assert_same(vectors)
    keyed = tmp_path / "keyed.hdf5"
    with VectorsWriter(keyed, index=False) as writer:
        for key in ("東京", "a b"):
            writer.write(key, np.full((2, 4), len(key)), key=key)
    assert_same(keyed)


@pytest.mark.slow
def test_more_sentences_than_one_process_reads(tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    with VectorsWriter(path) as writer:
        for k in range(1203):
            writer.write(f"sentence {k % 1100}", np.full((1, 2), k))
    assert_same(path)


def test_no_sentences(tmp_path: Path) -> None:
    with VectorsWriter(tmp_path / "vectors.hdf5"):
        pass
    assert not list(read_vectors(tmp_path / "vectors.hdf5", untrusted=True))


@pytest.mark.parametrize(("limit", "size"), [("_BYTES", 1), ("_BYTES", 192), ("_SENTENCES", 1), ("_CHARACTERS", 3)])
def test_parts(vectors: Path, monkeypatch: pytest.MonkeyPatch, limit: str, size: int) -> None:
    """Each has 96 bytes and 3 characters, but the first sentence, which comes again and so has no text."""
    monkeypatch.setattr(module, limit, size)
    sizes, first = [], 0
    while texts := module._read_part(str(vectors), first)[0]:
        sizes.append(len(texts))
        first += len(texts)
    assert sizes == ([1, 1, 1] if size == 1 else [2, 1])


def test_errors_are_those_of_reading_it_here(vectors: Path, tmp_path: Path) -> None:
    with h5py.File(vectors, "a") as file:
        del file["1"]
        file["1"] = np.full((3, 2, 4), np.nan, np.float32)
    for path, match in ((vectors, "the dataset 1 holds 24 values"), (tmp_path / "gone", "no such file")):
        told = []
        for untrusted in (False, True):
            with pytest.raises(VectorsError, match=match) as caught:
                list(read_vectors(path, untrusted=untrusted))
            told.append(str(caught.value))
        assert told[0] == told[1]


@pytest.mark.slow
def test_a_list_of_free_blocks_without_end(vectors: Path) -> None:
    make_heap_cycle(vectors)
    with pytest.raises(VectorsError, match="get it again"):
        next(read_vectors(vectors, untrusted=True))


@pytest.mark.slow
def test_a_text_whose_size_lets_hdf5_step_nowhere(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of an object in a global heap, and 16 bytes more, is 0 in 64 bits: HDF5 reads that object for ever."""
    content = bytearray(vectors.read_bytes())
    at = content.index(b"GCOL")
    assert struct.unpack_from("<H", content, at + 16) == (1,)
    struct.pack_into("<Q", content, at + 24, 2**64 - 16)
    vectors.write_bytes(content)
    monkeypatch.setattr(process, "_PATIENCE", 0.05)  # 3.7 seconds: the limits themselves have their own tests
    with pytest.raises(VectorsError, match=r"came to no end.*get it again"):
        next(read_vectors(vectors, untrusted=True))
