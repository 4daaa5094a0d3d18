"""ElmoEmbedder's files of vectors, and what it refuses to make them of."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from golden_files import read_golden

from spacy_elmo import ElmoEmbedder
from spacy_elmo.errors import CommandError, VectorsError
from spacy_elmo.formats import VectorsWriter

CLOSE = 1e-5
TEXT = "the cat sat .\n a  dog\tran \nthe cat sat .\nyes\n"


@pytest.fixture(scope="module")
def embedder(golden: Path) -> ElmoEmbedder:
    return ElmoEmbedder.from_bilm(read_golden(golden / "random_a").bilm)


@pytest.mark.parametrize("output_format", ["all", "top", "average"])
def test_embed_file(embedder: ElmoEmbedder, tmp_path: Path, output_format: str) -> None:
    path = tmp_path / "vectors.hdf5"
    embedder.embed_file(io.StringIO(TEXT), str(path), output_format, batch_size=3)
    expected = embedder.embed_batch([line.split() for line in TEXT.splitlines()])
    with h5py.File(path) as file:
        assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
        assert json.loads(file["sentence_to_index"][0]) == {"the cat sat .": "2", "a  dog\tran": "1", "yes": "3"}
        for i, layers in enumerate(expected):
            wanted = {"all": layers, "top": layers[-1], "average": layers.mean(0)}[output_format]
            assert file[str(i)].dtype == np.float32
            assert file[str(i)].shape == wanted.shape
            np.testing.assert_allclose(file[str(i)], wanted, atol=CLOSE)


def test_forget_sentences_and_sentence_keys(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    path = tmp_path / "vectors.hdf5"
    embedder.embed_file(io.StringIO(TEXT), path, forget_sentences=True)
    with h5py.File(path) as file:
        assert set(file) == {"0", "1", "2", "3"}
    embedder.embed_file(io.StringIO("a b\nc: d.\n0\n"), path, "top", use_sentence_keys=True)
    with h5py.File(path) as file:
        assert set(file) == {"a b", "c: d.", "0"}
        np.testing.assert_allclose(file["c: d."], embedder.embed_sentence(["c:", "d."])[-1], atol=CLOSE)


def test_lines_have_the_defaults_of_a_file(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    lines = TEXT.splitlines()
    embedder.embed_file(io.StringIO(TEXT), tmp_path / "a.hdf5")
    embedder.embed_lines([line.strip() for line in lines], tmp_path / "b.hdf5")
    with h5py.File(tmp_path / "a.hdf5") as a, h5py.File(tmp_path / "b.hdf5") as b:
        assert set(a) == set(b) == {"0", "1", "2", "3", "sentence_to_index"}
        assert a["sentence_to_index"][0] == b["sentence_to_index"][0]
        assert all(a[name].shape == b[name].shape == (3, len(lines[int(name)].split()), 32) for name in "0123")


def refused(embedder: ElmoEmbedder, tmp_path: Path, text: str, *parts: str, keys: bool = False) -> None:
    with pytest.raises(CommandError) as error:
        embedder.embed_file(io.StringIO(text), tmp_path / "x.hdf5", use_sentence_keys=keys)
    for part in parts:
        assert part in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_texts_that_are_refused(embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "embed_batch", lambda batch: pytest.fail("embedded"))
    refused(embedder, tmp_path, "a\n\nb\n \t\n", "these lines are empty: 2, 4. Expected")
    refused(embedder, tmp_path, "a\n" + "\n" * 13, "2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more")
    refused(embedder, tmp_path, "a\nb\nc\n b\n", "the lines 2 and 4 are the same", "--use-sentence-keys", keys=True)
    for line, part in (("x\ny/z", "a slash"), ("x\ny\0", "NUL"), ("x\n.", "dot"), ("x\n\ud800", "surrogate")):
        refused(embedder, tmp_path, line, "line 2 can't be the key", part, "--use-sentence-keys", keys=True)


@pytest.mark.parametrize("before", [1, 7, 5_000])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_text_that_is_not_utf8(embedder: ElmoEmbedder, tmp_path: Path, before: int, newline: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(f"naïve words{newline}".encode() * before + b"caf\xe9 .\n" + b"more\n" * 9_000)
    with path.open(encoding="utf8") as file, pytest.raises(CommandError, match=f"line {before + 1} is not UTF-8"):
        embedder.embed_file(file, tmp_path / "x.hdf5")
    with path.open("rb") as file, pytest.raises(CommandError, match="opened as bytes"):
        embedder.embed_file(file, tmp_path / "x.hdf5")
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_half_written(embedder: ElmoEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.hdf5"
    path.write_text("before")

    def stop(batch: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed_batch", stop)
        with pytest.raises(KeyboardInterrupt):
            embedder.embed_file(io.StringIO("a\nb"), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


WRITE_TOO_MUCH = """
import resource, sys
import numpy as np
from spacy_elmo.formats import VectorsWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
try:
    with VectorsWriter(sys.argv[1]) as writer:
        for k in range(100):
            writer.write(str(k), np.ones((3, 100, 32)))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of a file's size to set")
def test_a_file_that_can_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "x.hdf5"
    path.write_text("before")
    command = [sys.executable, "-c", WRITE_TOO_MUCH, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0  # HDF5 itself would crash the process at its end
    assert re.match(r"VectorsError .*x\.hdf5: can't be written .*too large", result.stdout)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_one(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.hdf5").symlink_to(tmp_path / "folder" / "x.hdf5")
    embedder.embed_file(io.StringIO("a"), tmp_path / "link.hdf5")
    assert (tmp_path / "link.hdf5").is_symlink()
    with h5py.File(tmp_path / "folder" / "x.hdf5") as file:
        assert "0" in file


def test_the_text_is_not_overwritten(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    text, link = tmp_path / "text.txt", tmp_path / "link.hdf5"
    text.write_text("a b\n")
    link.symlink_to(text)
    for output in (text, str(text), link):
        with text.open(encoding="utf8") as file, pytest.raises(CommandError, match="to write are the same"):
            embedder.embed_file(file, output)
    assert text.read_text() == "a b\n"
    with text.open(encoding="utf8") as file:
        embedder.embed_file(file, tmp_path / "x.hdf5")


def test_a_name_is_not_taken_for_a_file(embedder: ElmoEmbedder, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Expected an open file"):
        embedder.embed_file("text.txt", tmp_path / "x.hdf5")  # type: ignore[arg-type]
    with pytest.raises(CommandError, match="Expected a list of sentences"):
        embedder.embed_lines("a b", tmp_path / "x.hdf5")


# The writer


def test_writer_keys(tmp_path: Path) -> None:
    path = tmp_path / "x.hdf5"
    ones = np.ones((2, 3), np.float32)
    with VectorsWriter(path) as writer:
        writer.write("first", ones)
        writer.write("second", ones, key="a key")
        for key, part in (
            ("0", "was written before"),
            ("a key", "was written before"),
            ("", "not a string"),
            ("a/", "slash"),
        ):
            with pytest.raises(VectorsError, match=part):
                writer.write("third", ones, key=key)
        writer.write("third", ones)
        writer.write("fourth", ones, key="long " * 20_000)
    with h5py.File(path) as file:
        assert set(file) == {"0", "a key", "2", "long " * 20_000, "sentence_to_index"}
        assert json.loads(file["sentence_to_index"][0]) == {"first": "0", "third": "2"}
