"""Progress on standard error: a bar on a terminal, plain lines in a log file."""

import io
import sys

import pytest

from spacy_elmo.cli.embed import corpus_bar
from spacy_elmo.cli.shared import shown_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_in_a_log_file(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_bar(total=40, unit=" sentences", desc="reading") as bar:
        bar.update(40)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("reading: 0 of 40 sentences (0%), ")
    assert last.startswith("reading: 40 of 40 sentences (100%), ")
    assert last.endswith(" sentences/s, 00:00 left")


def test_plain_lines_if_the_total_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_bar(total=None, unit="B", unit_scale=True) as bar:
        bar.update(12_345)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("0.00B, ")
    assert last.startswith("12.3kB, ")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with shown_bar(total=40) as bar:
        bar.update(40)
    assert "40/40" in terminal.getvalue()
    assert "\r" in terminal.getvalue()


def test_nothing_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with shown_bar(total=40) as bar:
        bar.update(40)
    with corpus_bar(100, quiet=False) as update:
        update(1, 2)


@pytest.mark.parametrize("total", [100, None])
def test_the_end_of_a_corpus_is_told_once(capsys: pytest.CaptureFixture[str], total: int | None) -> None:
    """The total may have been an estimate."""
    with corpus_bar(total, quiet=False) as update:
        update(7, 30)
        update(8, 40)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("0.00" if total is None else "0.00 of 100B (0%)")
    assert last.startswith("70.0B, " if total is None else "70.0 of 70.0B (100%), ")
    assert ", 15 tokens, " in last
