"""Text files: which are found, how they are packed, their lines, and what is no text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from spacy_elmo.errors import CorpusError
from spacy_elmo.formats.paths import find_files
from spacy_elmo.text import files as module
from spacy_elmo.text.files import kind_of, lines_of, opened


def test_kinds() -> None:
    kinds = {"a.jsonl": ".jsonl", "a.spacy.xz": ".spacy", "a.b.conllu.zst": ".conllu", "a.gz": "", "a": ""}
    for name, kind in (kinds | {"a.gz.txt": ".txt", "A.JSONL.GZ": ".jsonl"}).items():
        assert kind_of(Path("some.folder") / name) == kind


def test_an_output_folder_hides_all_that_is_in_it(tmp_path: Path) -> None:
    names = ["b.txt", "a/z.txt", "a/deep/y.txt", "ab.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_files(tmp_path) == [tmp_path / name for name in ("a/deep/y.txt", "a/z.txt", "ab.txt", "b.txt")]
    for source in (tmp_path, tmp_path / "**" / "*.txt"):
        assert find_files(source, tmp_path / "a") == [tmp_path / name for name in ("ab.txt", "b.txt")]


def test_a_folder_that_can_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its texts would be left out without a word."""
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.txt").touch()
    scandir = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CorpusError, match=r"Permission denied.*closed"):
        find_files(tmp_path)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b"\n"]),
        (b"ab\r\nc\rd", [b"ab\r\n", b"c\r", b"d"]),
        (b"a\r\r\nb\r", [b"a\r", b"\r\n", b"b\r"]),
        (b"1234\n12345\n12345", [b"1234\n", None, None]),
        (b"123456789\n\n1", [None, b"\n", b"1"]),
        (b"1234567890123\n1\n", [None, b"1\n"]),
    ],
)
def test_lines(content: bytes, lines: list[bytes | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 4)
    assert list(lines_of(io.BytesIO(content))) == lines


@pytest.mark.parametrize("longest", [1, 6, 100])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 100])
def test_lines_are_those_of_pythons_text_files(block: int, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the blocks end that are read at once."""
    monkeypatch.setattr(module, "_BLOCK", block)
    monkeypatch.setattr(module, "LONGEST_LINE", longest)
    rng = random.Random(block)
    for _ in range(300):
        content = "".join(
            rng.choices(["a", "\r", "\n", "\r\n", "\x0b", "\u2028"], [5, 1, 1, 1, 1, 1], k=rng.randint(0, 20))
        )
        expected = list(io.TextIOWrapper(io.BytesIO(content.encode()), encoding="utf8"))  # the ends become \n
        found = list(lines_of(io.BytesIO(content.encode())))
        assert len(found) == len(expected)
        for line, text in zip(found, expected):
            if len(text.rstrip("\n").encode()) > longest:
                assert line is None
            else:
                assert line is not None
                assert line.decode().removesuffix("\n").removesuffix("\r") == text.removesuffix("\n")


def not_text() -> dict[str, bytes]:
    """Files that are no text, under the names of texts, and a word of what is told of each."""
    zipped, tar, array = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("a.txt", "the cat sat")
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    np.save(array, np.arange(9))
    noise = np.random.default_rng(0).integers(0, 256, 4000, np.uint8).tobytes()
    return {
        "zip archive": zipped.getvalue(),
        "tar archive": tar.getvalue(),
        "numpy": array.getvalue(),
        "gzip": gzip.compress(b"text"),
        "bzip2": bz2.compress(b"text"),
        "xz": lzma.compress(b"text"),
        "PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
        "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "JPEG": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
        "GIF": b"GIF89a\1\0\1\0",
        "Parquet": b"PAR1\x15\x04\x15\x10",
        "HDF5": b"\x89HDF\r\n\x1a\n\0\0",
        "UTF-16": "The cat sat.\n".encode("utf-16"),
        "without its mark": ("The cat sat.\n" * 9).encode("utf-16-le"),
        "no text": noise,
    }


@pytest.mark.parametrize("name", not_text())
def test_what_is_no_text_is_called_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(not_text()[name])
    with pytest.raises(CorpusError, match=rf"a\.txt: .*{name}.* Expected text in UTF-8"), opened(tmp_path / "a.txt"):
        pass


@pytest.mark.parametrize("text", ["RIFF and \x01", "PAR1", "MMORPG\x7f", "BZh is bzip2", "\x1b[1mbold\x1b[0m", "PK"])
def test_texts_that_begin_like_other_files(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text, encoding="utf8")
    with opened(tmp_path / "a.txt") as (file, _):
        assert file.read().decode() == text
