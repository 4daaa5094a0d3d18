"""Sentences of whole sources, and the report of what was left out."""

import bz2
import gzip
import json
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from spacy_elmo.errors import CorpusError
from spacy_elmo.pretraining.prepared import prepare
from spacy_elmo.text.stream import Report, read_sentences

TEXT = "a b c\n\n  d\te  \nf\n"
SENTENCES = [["a", "b", "c"], ["d", "e"], ["f"]]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".XZ": lzma.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,  # as the command zstd writes
}


def read(path: Path | str, language: str | None = None) -> tuple[list[list[str]], Report]:
    report = Report()
    return list(read_sentences(path, language, report)), report


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode("utf8") if isinstance(content, str) else content)
    return path


def reasons(content: bytes | str, path: Path) -> list[tuple[int, str]]:
    """Bad lines of a content that is followed by a good one."""
    end = b'\n{"text": "good"}\n' if path.suffix == ".jsonl" else b"\ngood\n"
    sentences, report = read(written(path, (content.encode("utf8") if isinstance(content, str) else content) + end))
    assert sentences[-1] == ["good"]
    assert report.n_bad == len(report.bad)
    assert all(file == str(path) for file, _, _ in report.bad)
    return [(line, reason) for _, line, reason in report.bad]


RECORDS = [
    {"text": "a b  c"},
    {"tokens": ["d", "\n", "e"], "text": "other"},
    {"text": " "},
    {"tokens": []},
    {"text": "f"},
]


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize(
    ("name", "content", "report"),
    [
        ("a.txt", TEXT, Report(lines=4, sentences=3, tokens=6, blank=1)),
        ("a.jsonl", "\n".join(map(json.dumps, RECORDS)) + "\n\n", Report(lines=6, sentences=3, tokens=6, blank=3)),
    ],
)
def test_text_and_json_lines(name: str, content: str, report: Report, packed: str, tmp_path: Path) -> None:
    """A byte order mark is no letter."""
    path = written(tmp_path / f"{name}{packed}", PACKERS[packed](f"\ufeff{content}".encode()))
    assert read(path) == (SENTENCES, report)


def test_tokenised_by_a_language(tmp_path: Path) -> None:
    written(tmp_path / "a.txt", "Don't  go, U.S.A.!\n\n \n")
    written(tmp_path / "b.jsonl", '{"text": "It\'s"}\n{"tokens": ["It\'s"]}\n')
    sentences, report = read(tmp_path, "en")
    assert sentences == [["Do", "n't", "go", ",", "U.S.A.", "!"], ["It", "'s"], ["It's"]]
    assert (report.tokens, report.blank) == (9, 2)


@pytest.mark.parametrize("language", ["zz", "", "../en", "char_classes", "EN"])
def test_unknown_languages(language: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="Expected the code of a language") as caught:
        read_sentences(written(tmp_path / "a.txt", TEXT), language)
    assert repr(language) in str(caught.value)


def test_a_language_whose_tokenizer_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pythainlp.tokenize", None)  # as if it were not installed
    with pytest.raises(CorpusError, match="language 'th' needs a package that is not installed") as caught:
        read_sentences(written(tmp_path / "a.txt", TEXT), "th")
    assert "PyThaiNLP" in str(caught.value)


def test_bad_text(tmp_path: Path) -> None:
    assert reasons(b"a \xff b\nfine\na\x00b\n\xed\xa0\x80", tmp_path / "a.txt") == [
        (1, "not UTF-8 (invalid start byte at byte 2)"),
        (3, "a NUL character"),
        (4, "not UTF-8 (invalid continuation byte at byte 0)"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("null", "no JSON object"),
        ('[{"text": "a"}]', "a list in square brackets is not JSON lines"),
        ('{"text": 3}', '"text" is no string'),
        ('{"tokens": "a b"}', '"tokens" is no list'),
        ('{"tokens": ["a", null]}', '"tokens" is no list'),
        ('{"tokens": [1, 2]}', '"tokens" is no list'),
        ('{"tokens": {"a": 1}, "text": "b"}', '"tokens" is no list'),
        ('{"tokens": ["a\\u0000"]}', "a NUL character"),
        ('{"text": "a\\u0000"}', "a NUL character"),
        ('{"tokens": ["\\ud800"]}', "surrogate"),
        ('{"text": "\\ud800"}', "surrogate"),
        ("[" * 100_000, "not JSON"),
        ('{"text": ' + "1" * 5_000 + "}", "not JSON"),
        (b'{"text": "\xff"}', "not UTF-8"),
        ('{"text": "a", "id": "\\ud800"}', "surrogate"),
        ('{"text": "a", "score": 1e999}', "not JSON (a number is NaN, infinite or too large"),
        ('{"text": "a", "deep": ' + '{"a":' * 20_000 + "1" + "}" * 20_001, "not JSON"),
    ],
)
def test_bad_json(line: str | bytes, reason: str, tmp_path: Path) -> None:
    [(number, told)] = reasons(line, tmp_path / "a.jsonl")
    assert number == 1
    assert reason in told


def test_fields_that_are_null(tmp_path: Path) -> None:
    """As if they were not there; an object without a text has no words."""
    records = [
        {"text": "a b", "tokens": None},
        {"text": None, "tokens": None},
        {"text": None, "tokens": ["A", "b"]},
        {"text": None},
        {"text": "p q", "tokens": []},
        {"tokens": ["a", "", " "], "text": None, "id": None, "sents": None},
        {"text": "x y", "tokens": None, "sents": [{"start": []}, None, 3]},
        {
            "text": "x y",
            "tokens": [{"start": 0, "end": 1, "text": None}, {"start": 2, "end": 3}],
            "sents": [{"start": []}],
        },
    ]
    path = written(tmp_path / "a.jsonl", "\n".join([*map(json.dumps, records), '{"text": NaN}']) + "\n")
    sentences, report = read(path)
    assert sentences == [["a", "b"], ["A", "b"], ["p", "q"], ["a"], ["x", "y"], ["x", "y"]]
    assert (report.lines, report.blank, report.n_bad) == (9, 3, 0)


def test_ten_bad_lines_are_listed(tmp_path: Path) -> None:
    _, report = read(written(tmp_path / "a.txt", b"\xff\n" * 25 + b"a\n"))
    assert report.n_bad == 25
    assert [line for _, line, _ in report.bad] == list(range(1, 11))
    assert str(report.bad[0]).startswith(f"{tmp_path / 'a.txt'}, line 1: not UTF-8")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".XZ", ".zst"])
def test_damaged_archives(suffix: str, tmp_path: Path) -> None:
    content = "".join(f"{i * 7919 % 10007} {i}\n" for i in range(4_000)).encode()
    packed = PACKERS[suffix](content)
    middle = len(packed) // 2
    bad = [packed[:middle], packed[:-3], packed[:1000] + bytes(100) + packed[1100:], content]
    if suffix not in (".XZ", ".bz2"):  # Python's reader ignores what follows
        bad.append(packed + b"garbage")
    for number, damaged in enumerate(bad):
        path = written(tmp_path / f"{number}.txt{suffix}", damaged)
        with pytest.raises(CorpusError, match="damaged, cut short or unreadable") as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_a_bad_file_in_a_folder_is_a_bad_item(tmp_path: Path) -> None:
    """What comes before the damage and all other files are read."""
    content = "".join(f"{i * 7919 % 10007} {i}\n" for i in range(4_000)).encode()
    written(tmp_path / "a.txt", "first\n")
    written(tmp_path / "b.txt.gz", gzip.compress(content)[:-3])
    written(tmp_path / "c.pdf", b"%PDF-1.7\n" + bytes(range(256)))
    written(tmp_path / "d.txt", "last\n")
    written(tmp_path / "e.spacy", b"garbage")
    sentences, report = read(tmp_path)
    assert (sentences[0], sentences[-1], sentences[5]) == (["first"], ["last"], [str(4 * 7919 % 10007), "4"])
    assert [(Path(file).name, line > 1) for file, line, _ in report.bad] == [
        ("b.txt.gz", True), ("c.pdf", False), ("e.spacy", False)
    ]  # fmt: skip
    assert report.bad[1].reason == "a PDF document. Expected text in UTF-8."
    with pytest.raises(CorpusError, match=r"c\.pdf: a PDF document"):
        read(tmp_path / "c.pdf")


def test_zstd_without_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.zst", PACKERS[".zst"](b"a\n"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(CorpusError, match=r"pip install zstandard"):
        read(path)


def test_all_files_of_a_folder_are_read_in_sorted_order(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    written(tmp_path / "b.txt", "b\n")
    written(tmp_path / "a.txt.gz", gzip.compress(b"a\n"))
    written(tmp_path / "deep" / "er" / "c.jsonl", '{"text": "c"}\n')
    written(tmp_path / ".hidden", "no\n")
    (tmp_path / ".git").mkdir()
    written(tmp_path / ".git" / "config", "no\n")
    (tmp_path / "deep" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    assert read(tmp_path)[0] == [["a"], ["b"], ["c"]]
    assert read(str(tmp_path / "**" / "*.*"))[0] == [["a"], ["b"], ["c"]]
    assert read(str(tmp_path / "*.t?t"))[0] == [["b"]]
    assert read(str(tmp_path / ".h*"))[0] == [["no"]]


def test_sources_without_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    for name, problem in [
        ("nothing", "no such file or folder"),
        ("*.nothing", "no such file or folder"),
        ("circle", "no such file or folder"),
        ("a\0b", "no such file or folder"),
        ("empty", "a folder without files"),
        ("pipe", "neither a file nor a folder"),
        ("a**", "no files can be found|no such file"),  # since Python 3.13 it is a pattern
        *((name, "no such file|no files can be found") for name in ("x" * 5000, "\ud800", "x" * 5000 + "*")),
    ]:
        with pytest.raises(CorpusError, match=problem):
            read_sentences(str(tmp_path / name))
    with pytest.raises(CorpusError, match="no such file"):
        read_sentences("")
    with pytest.raises(CorpusError, match="no such file"):
        prepare("a\0b", tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xfd\xfd\n\0\n"])
def test_no_sentence_at_all(content: bytes, tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", content)
    with pytest.raises(CorpusError, match=rf"{path}: no sentence that can be read"):
        read(path)
