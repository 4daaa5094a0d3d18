"""Colours of messages."""

import io
import sys

import pytest

from spacy_elmo.cli.console import TerminalPrinter


class Terminal(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, to: io.StringIO) -> str:
    printer = TerminalPrinter()
    monkeypatch.setattr(sys, "stdout", to)
    printer.divider("layer 1")
    printer.fail("wrong")
    printer.text("plain")
    return to.getvalue()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the tests' own terminal."""
    for name in ("NO_COLOR", "ANSI_COLORS_DISABLED", "WASABI_LOG_FRIENDLY", "WASABI_NO_PRETTY"):
        monkeypatch.delenv(name, raising=False)


def test_a_terminal_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(monkeypatch, Terminal()).splitlines()
    assert lines[0] == "\x1b[1m"
    assert "wrong" in lines[-2]
    assert lines[-2].startswith("\x1b[38;5;1m")
    assert lines[-1] == "plain"


@pytest.mark.parametrize("variable", [None, "NO_COLOR"])
def test_no_colours(variable: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file or pipe, or in a terminal for which they are not wanted."""
    if variable is not None:
        monkeypatch.setenv(variable, "1")
    told = printed(monkeypatch, io.StringIO() if variable is None else Terminal())
    assert "\x1b" not in told
    lines = told.splitlines()
    assert lines[1] == "=" * 35 + " layer 1 " + "=" * 36
    assert len(lines[1]) == 80
    assert "wrong" in lines[-2]


def test_a_variable_of_wasabi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSI_COLORS_DISABLED", "1")
    assert "\x1b" not in printed(monkeypatch, Terminal())


class Log:
    """What a program may put in the place of standard output."""

    write = flush = lambda *arguments: None


@pytest.mark.parametrize("stream", [None, Log()])
def test_a_standard_output_that_is_no_file(stream: Log | None, monkeypatch: pytest.MonkeyPatch) -> None:
    printer = TerminalPrinter(no_print=True)
    monkeypatch.setattr(sys, "stdout", stream)
    assert "\x1b" not in printer.fail("wrong")
