"""The bar that counts sentences: on a terminal alone, or in lines for a log file."""

import io
import sys

import pytest

from spacy_elmo.allennlp.embedder import BarSetting, Lines, bar_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("file", "progress", "shown"),
    [
        (Terminal, True, True),
        (Terminal, False, False),
        (io.StringIO, True, False),  # each state of the bar would stay in the file
        (io.StringIO, False, False),
        (io.StringIO, "lines", True),
    ],
)
def test_where_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, file: type[io.StringIO], progress: BarSetting, shown: bool
) -> None:
    stream = file()
    monkeypatch.setattr(sys, "stderr", stream)
    with bar_of(2, progress) as bar:
        for _ in range(2):
            bar.update()
    assert ("2/2" in stream.getvalue()) is shown
    if progress == "lines":
        assert "\r" not in stream.getvalue()
        assert all(line.strip() for line in stream.getvalue().splitlines())


@pytest.mark.parametrize("progress", [True, False, "lines"])
def test_without_stderr_nothing_is_shown(monkeypatch: pytest.MonkeyPatch, progress: BarSetting) -> None:
    """pythonw on Windows has none."""
    monkeypatch.setattr(sys, "stderr", None)
    with bar_of(1, progress) as bar:
        bar.update()


def test_a_line_does_not_come_twice() -> None:
    file = io.StringIO()
    lines = Lines(file)
    for text in ("\r1 of 2", "\r1 of 2  ", "\r2 of 2", "\n", "\r2 of 2"):
        lines.write(text)
    assert file.getvalue() == "1 of 2\n2 of 2\n"
