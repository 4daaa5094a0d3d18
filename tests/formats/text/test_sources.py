"""Sources of text: kinds of files, what an output folder hides, and folders that can't be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spacy_elmo.errors import CorpusError
from spacy_elmo.formats.text import find_files, kind_of, refuse_inside


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", ".jsonl"),
        ("a.jsonl.gz", ".jsonl"),
        ("a.spacy.xz", ".spacy"),
        ("a.b.conllu.zst", ".conllu"),
        ("a.gz", ""),
        ("a", ""),
        ("a.gz.txt", ".txt"),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert kind_of(Path("some.folder") / name) == kind


def test_an_output_folder_hides_all_that_is_in_it(tmp_path: Path) -> None:
    names = ["b.txt", "a/z.txt", "a/deep/y.txt", "ab.txt"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_files(tmp_path) == [tmp_path / name for name in ("a/deep/y.txt", "a/z.txt", "ab.txt", "b.txt")]
    for source in (tmp_path, tmp_path / "**" / "*.txt"):
        assert find_files(source, tmp_path / "a") == [tmp_path / name for name in ("ab.txt", "b.txt")]


def test_an_output_that_would_belong_to_its_source(tmp_path: Path) -> None:
    (tmp_path / "texts" / "deep").mkdir(parents=True)
    (tmp_path / "texts" / "deep" / "a.txt").touch()
    texts, pattern = tmp_path / "texts", str(tmp_path / "*" / "deep" / "*.txt")
    for source, target in ((texts, texts), (texts, texts / "out"), (pattern, texts), (pattern, texts / "deep")):
        with pytest.raises(CorpusError, match=str(target)):
            refuse_inside(source, target)
    for source, target in ((texts, tmp_path / "out"), (texts, tmp_path / "texts2"), (pattern, texts / "out")):
        refuse_inside(source, target)


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
    with pytest.raises(CorpusError, match=r"closed.*Permission denied"):
        find_files(tmp_path)
