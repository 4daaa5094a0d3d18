"""A text in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from spacy_elmo.errors import CorpusError
from spacy_elmo.pretraining.scoring import SpooledText

TEXT = [["a", "b"], [], ["東京", "🙂"], ["a b", "\n", ""], ["\ud800", "\u2028", "\0", '"'], ["z"] * 5_000, ["end"]]


def test_it_can_be_read_twice() -> None:
    with SpooledText(iter(TEXT)) as text:
        assert text.n_sentences == len(TEXT)
        assert list(text) == TEXT
        assert list(text) == TEXT


@pytest.mark.parametrize(
    ("n_parts", "sizes"), [(1, [7]), (2, [3, 4]), (3, [2, 2, 3]), (7, [1] * 7), (9, [0, 1, 1, 1, 0, 1, 1, 1, 1])]
)
def test_parts_read_side_by_side(n_parts: int, sizes: list[int]) -> None:
    with SpooledText(TEXT) as text:
        parts = text.parts(n_parts)
        got: list[list[list[str]]] = [[] for _ in parts]
        for _ in range(max(sizes)):
            for part, read in zip(parts, got):
                read.extend(sentence for _, sentence in zip(range(1), part))
    assert [len(read) for read in got] == sizes
    assert [sentence for read in got for sentence in read] == TEXT


def test_a_text_without_sentences() -> None:
    with SpooledText([]) as text:
        assert list(text) == []
        assert text.n_sentences == 0
        assert [list(part) for part in text.parts(2)] == [[], []]


def test_the_file_is_closed_when_reading_the_text_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    make = tempfile.TemporaryFile

    def recorded() -> object:
        opened.append(make())
        return opened[0]

    def broken() -> Iterator[list[str]]:
        yield ["a"]
        raise CorpusError("damaged")

    monkeypatch.setattr(tempfile, "TemporaryFile", recorded)
    with pytest.raises(CorpusError, match="damaged"):
        SpooledText(broken())
    assert opened[0].closed


@pytest.mark.parametrize("n_sentences", [1, 10_000])
def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, n_sentences: int) -> None:
    class Full:
        def write(self, data: bytes) -> None:
            if n_sentences > 1:
                raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    monkeypatch.setattr(tempfile, "tempdir", "/here")
    with pytest.raises(CorpusError, match=r"/here: .*can't be written .*No space left.*TMPDIR"):
        SpooledText([["a"]] * n_sentences)


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/here', '/there']")

    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", "/here")
    with pytest.raises(CorpusError, match=r"^/here: .*can't be written .*No usable.*/there"):
        SpooledText([["a"]])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no full device")
def test_closing_does_not_raise_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing a file tries to write its buffer again."""
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: open("/dev/full", "wb"))  # noqa: SIM115  # SpooledText closes it
    with pytest.raises(CorpusError, match="can't be written"):
        SpooledText([["a"]])
