"""`elmo vocab`, through spaCy's own app."""

import os
from functools import partial
from pathlib import Path

import commands
import numpy as np
import pytest
from commands import invoke

TEXT = "b a c\n\na <UNK>\nd c a <S>\n"


run = partial(commands.run, "elmo", "vocab")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf8")
    return path


def words(path: Path) -> list[str]:
    return path.read_text(encoding="utf8").split("\n")


def test_the_files_and_what_is_told(text: Path) -> None:
    out = text.with_name("vocabulary.txt")
    told = run(text, out, "--size", 5)
    assert words(out) == ["<S>", "</S>", "<UNK>", "a", "c", ""]
    assert np.load(text.with_name("vocabulary.counts.npy")).tolist() == [3, 3, 4, 3, 2]
    for part in ("sentences 3", "tokens 9", "distinct words 6", "vocabulary 5,", "coverage 55.56%", "blank lines 1"):
        assert part in told


def test_bad_lines_are_named(text: Path) -> None:
    text.write_bytes(b"\xff\n" * 12 + b"Don't go, don't!\n")
    told = run(text, text.with_name("v.txt"), "--lang", "en", "--min-count", 2)
    assert words(text.with_name("v.txt")) == ["<S>", "</S>", "<UNK>", "n't", ""]
    assert "12 bad lines were left out" in told
    assert "line 1: not UTF-8" in told
    assert "line 10: not UTF-8" in told
    assert "line 11" not in told
    assert "and 2 more" in told


def test_a_dash_is_a_stream(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(text, text.with_name("v.txt"))
    expected = text.with_name("v.txt").read_text(encoding="utf8")
    monkeypatch.chdir(text.parent)
    result = invoke("elmo", "vocab", "-", "-", stdin=TEXT)
    assert result.stdout == expected
    assert "sentences 3" in " ".join(result.stderr.split())
    run(text, "w.txt")
    run("-", "w.txt", "-F", stdin="other\n")
    assert words(Path("w.txt")) == ["<S>", "</S>", "<UNK>", "other", ""]
    assert not Path("-").exists()
    for stdin, told in ((b"\n", "standard input"), (b"\xff\n", "line 1: not UTF-8")):
        result = invoke("elmo", "vocab", "-", "-", stdin=stdin, code=1)
        assert told in result.stderr
        assert result.stdout == ""


def test_nothing_is_replaced_unasked(text: Path) -> None:
    out = text.with_name("v.txt")
    out.write_text("mine", encoding="utf8")
    assert "no earlier command of this kind has written it" in run(text, out, "--force", code=1)
    assert out.read_text(encoding="utf8") == "mine"
    out.unlink()
    run(text, out)
    before = out.read_bytes()
    assert "add --force" in run(text, out, code=1)
    assert out.read_bytes() == before
    out.unlink()
    assert "v.counts.npy: exists" in run(text, out, code=1)
    assert not out.exists()
    run(text, out, "--force")
    assert words(out)[3] == "a"


def test_what_can_not_be_used(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.txt"
    assert "Expected the code of a language" in run(text, out, "--lang", "zz", code=1)
    assert "Lower vocabulary.min_count (vocab: --min-count)" in run(text, out, "--min-count", 9, code=1)
    text.write_bytes(b"\xff\n")
    assert "line 1: not UTF-8" in run(text, out, code=1)
    assert os.listdir(tmp_path) == ["text.txt"]
