"""Text files: which are found, their lines, how they are packed, and the places of words.

The tests of corpora and of pretraining read whole files.
"""

from __future__ import annotations

import gzip
import io
import os
from functools import partial
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin

from spacy_elmo.errors import CorpusError
from spacy_elmo.formats import text as module
from spacy_elmo.formats.text import (
    Tokenize,
    Unusable,
    blank,
    decode_line,
    docs_in,
    find_files,
    kind_of,
    lines_of,
    refuse_inside,
    sentences_of,
)


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


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [b"\n"]),
        (b"ab\r\nc\rd", [b"ab\r\n", b"c\rd"]),
        (b"1234\n12345\n12345", [b"1234\n", None, None]),
        (b"123456789\n\n1", [None, b"\n", b"1"]),
        (b"1234567890123\n1\n", [None, b"1\n"]),
    ],
)
def test_lines(content: bytes, lines: list[bytes | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_LINE", 4)
    assert list(lines_of(io.BytesIO(content))) == lines


@pytest.fixture(scope="module")
def tokenizer() -> Tokenize:
    return Tokenize(partial(blank, "xx"))


def test_places_of_words_inside_a_token() -> None:
    """A token with blanks is one word, as in the pipeline: here all but the first letter is one."""
    nlp = spacy.blank("xx")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=["x", text[2:]], spaces=[True, False])
    assert Tokenize(lambda: nlp).words_and_offsets("x b cc") == (["x", "b cc"], [(0, 1), (2, 6)])
    assert Tokenize(lambda: nlp)("x b cc") == ["x", "b cc"]


def test_the_longest_text(tokenizer: Tokenize, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spacy.blank("xx").max_length == module._LONGEST
    monkeypatch.setattr(module, "_LONGEST", 10)
    assert tokenizer("aaaa bbbbb") == ["aaaa", "bbbbb"]
    with pytest.raises(Unusable, match="more than 10 characters"):
        tokenizer("aaaaa bbbbb")


def test_the_tokenizer_is_replaced_after_enough_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWED_AFTER", 10)
    loads: list[int] = []

    def load() -> spacy.language.Language:
        loads.append(1)
        return blank("xx")

    tokenizer = Tokenize(load)
    counts = []
    for _ in range(5):
        tokenizer("a bcd")  # 5 characters
        counts.append(len(loads))
    assert counts == [1, 1, 2, 2, 3]


def test_a_byte_order_mark_only_at_the_beginning_of_a_file() -> None:
    line = b"\xef\xbb\xbfa"
    assert decode_line(line, 1) == "a"
    assert decode_line(line, 2) == "\ufeffa"
    assert decode_line(b"\xef\xbb\xbf" + line, 1) == "\ufeffa"


def docs() -> list[Doc]:
    vocab = spacy.blank("xx").vocab
    words = ["a", "b", "\n", "é", "中"]
    heads = Doc(vocab, words=words, heads=[0, 0, 1, 4, 4], deps=["ROOT", "x", "x", "x", "ROOT"], tags=["T"] * 5)
    starts = Doc(vocab, words=words, sent_starts=[True, False, None, True, False], spaces=[True, False] * 2 + [True])
    return [heads, Doc(vocab, words=[]), starts, Doc(vocab, words=["ORTH", " ", "x"])]


def test_docs_that_were_written_are_read(tmp_path: Path) -> None:
    written = docs()
    written[0].user_data["._.", "mood", 0, None] = (1.5, {"a": None})
    (tmp_path / "docs.spacy.gz").write_bytes(gzip.compress(DocBin(docs=written, store_user_data=True).to_bytes()))
    read = list(docs_in(tmp_path / "docs.spacy.gz"))
    assert [doc.to_json() for doc in read] == [doc.to_json() for doc in written]
    assert read[0].user_data == written[0].user_data
    assert [[span.text for span in sentences_of(doc)] for doc in read] == [
        ["a b \n", "é 中"], [], ["a b\n", "é中"], ["ORTH   x"]
    ]  # fmt: skip
    DocBin().to_disk(tmp_path / "docs.spacy")
    assert list(docs_in(tmp_path / "docs.spacy")) == []


def test_damaged_docs(tmp_path: Path) -> None:
    data, path = DocBin(docs=docs()).to_bytes(), tmp_path / "docs.spacy"
    for damaged in (data[:-1], b"", data[2:], data[:-9] + b"garbage .."):
        path.write_bytes(damaged)
        with pytest.raises(CorpusError, match=r"docs\.spacy: damaged, cut short or unreadable \("):
            list(docs_in(path))
