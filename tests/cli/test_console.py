"""How commands print, fail and stop, whatever they do."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from commands import invoke, run
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

from spacy_elmo.cli import app, console
from spacy_elmo.cli.console import TerminalPrinter, plain_warnings, print_error, stoppable, with_exit_codes
from spacy_elmo.errors import CommandError, OtherLanguageWarning
from spacy_elmo.formats.vectors import DeferredErrorFile
from spacy_elmo.modules import loading

BILM = Path(__file__).parents[1] / "golden" / "random_a"
CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
posix = pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")
has_full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no full device")


class Terminal(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


# What is printed


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the tests' own terminal."""
    for name in ("NO_COLOR", "ANSI_COLORS_DISABLED", "WASABI_LOG_FRIENDLY", "WASABI_NO_PRETTY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("terminal", "variable"), [(True, None), (True, "NO_COLOR"), (False, None)])
def test_colours(terminal: bool, variable: str | None, no_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal has them, unless they are not wanted; a file or pipe has none."""
    printer, to = TerminalPrinter(), Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", to)
    if variable is not None:
        monkeypatch.setenv(variable, "1")
    printer.divider("layer 1")
    printer.fail("wrong")
    printer.text("plain")
    *heading, wrong, plain = to.getvalue().splitlines()
    assert ("\x1b" in to.getvalue()) == (terminal and variable is None)
    assert plain == "plain"
    if terminal and variable is None:
        assert heading[0] == "\x1b[1m"
        assert wrong.startswith("\x1b[38;5;1m")
    else:
        assert heading == ["", "=" * 35 + " layer 1 " + "=" * 36]


def test_no_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    printer = TerminalPrinter(no_print=True)
    for stream in (None, SimpleNamespace(write=print)):
        monkeypatch.setattr(sys, "stdout", stream)
        assert "\x1b" not in printer.fail("wrong")


def test_what_controls_a_terminal_is_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "NO_UTF8", False)
    printer = TerminalPrinter()
    printer.text("ü東\udce9", "a\x1b[31m\r\x9bb")
    printer.table([("a\x1b",)], header=("b",))
    printer.divider("c\x1b")
    told = capsys.readouterr().out
    assert told.startswith("ü東\\udce9\na\\x1b[31m\\r\\x9bb\n")
    assert "\na\\x1b" in told
    assert " c\\x1b " in told
    monkeypatch.setattr(console, "NO_UTF8", True)
    printer.text("aü東\udce9")
    assert capsys.readouterr().out == "a\\xfc\\u6771\\udce9\n"


@pytest.fixture
def accents(tmp_path: Path) -> list[str]:
    """A command whose result has characters that few encodings have."""
    (tmp_path / "t.txt").write_text("bank é \U0001f600\nbank\n", encoding="utf8")
    return ["elmo", "similar", str(BILM), str(tmp_path / "t.txt"), "--word", "bank"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_json_in_an_encoding_without_all_characters(encoding: str, accents: list[str]) -> None:
    done = CliRunner(charset=encoding).invoke(spacy_app, [*accents, "--json"])
    assert json.loads(done.stdout)["query"]["sentence"] == "bank é \U0001f600"
    assert ("é \U0001f600" in done.stdout) == (encoding == "utf-8")


@pytest.mark.slow
def test_a_table_in_an_encoding_without_all_characters(accents: list[str]) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-m", "spacy", *accents], env=environment, capture_output=True, check=True)
    assert "*bank* \\xe9 \\U0001f600" in done.stdout.decode("ascii")


# Warnings


@pytest.mark.filterwarnings("always::spacy_elmo.errors.TruncatedWordsWarning")
def test_long_words_are_told_in_a_plain_line(tmp_path: Path) -> None:
    """It names no line of code, and no attribute of an object, which a user of the command does not have."""
    text = tmp_path / "text.txt"
    text.write_text(f"the bank {'x' * 80}\nthe bank is\n", encoding="utf8")
    result = invoke("elmo", "similar", BILM, text, "--word", "bank")
    assert "has 80 bytes in UTF-8, but the biLM reads the first 48 of a token" in " ".join(result.stderr.split())
    for part in ("Warning", ".py", "n_truncated"):
        assert part not in result.output
    assert "bytes" not in result.stdout


@pytest.mark.filterwarnings("always")
def test_other_warnings_are_shown_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    before = warnings.showwarning
    with warnings.catch_warnings(record=True) as caught, plain_warnings():
        warnings.warn("of this package", OtherLanguageWarning, stacklevel=1)
        warnings.warn("of another one", UserWarning, stacklevel=1)
        warnings.warn_explicit("of its code", UserWarning, loading.__file__, 1)
    assert warnings.showwarning is before
    told = capsys.readouterr().err
    assert "of this package" in told
    assert "of its code" in told
    assert ".py" not in told
    assert [str(warning.message) for warning in caught] == ["of another one"]


@pytest.mark.filterwarnings("always")
@has_full_device
def test_a_warning_that_cannot_be_written_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        for stream in (None, io.TextIOWrapper(full, write_through=True)):
            monkeypatch.setattr(sys, "stderr", stream)
            with plain_warnings():
                warnings.warn("of this package", OtherLanguageWarning, stacklevel=1)


# What is refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a\0b", "c"], r"'a\x00b' has a NUL character, which no path can have. Remove the character."),
        (["c", "--train", "a\0b"], r"'a\x00b' has a NUL character"),
        (["", "c"], "an empty argument. Expected a name or a text"),
        (["run.cfg", ""], "an empty argument. Expected a name or a text"),
        (["--train", "a.txt", ""], "an empty argument. Expected a name or a text"),
        (["c", "--lang", ""], "--lang is followed by an empty argument"),
        (["c", "--lang="], "--lang is followed by an empty argument"),
        (["c", "-m", ""], "-m is followed by an empty argument"),
        (["--a.b=1", ""], "--a.b=1 is followed by an empty argument"),
    ],
)
@pytest.mark.parametrize("command", ["info", "pretrain"])
def test_arguments_that_all_commands_refuse(command: str, arguments: list[str], message: str) -> None:
    """A path ends at NUL, and an empty one is the current folder."""
    result = CliRunner().invoke(app, [command, *arguments], terminal_width=200)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("arguments", [["--paths.init", ""], ["--paths.init="]])
def test_an_empty_setting_of_a_config(arguments: list[str], tmp_path: Path) -> None:
    told = run("elmo", "pretrain", tmp_path / "a.cfg", "out", *arguments, code=2)
    assert "an empty argument" not in told
    assert "doesnotexist" in told.replace("│", "").replace(" ", "")


# A standard output that is lost


def end(command: str, where: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "text.txt").write_text("the river bank\n" * 9000)
    line = f"set -o pipefail; {sys.executable} -m spacy elmo {command} {where}"
    return subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.slow
@has_full_device
@pytest.mark.parametrize("command", ["vocab text.txt -", "--help"])
def test_a_full_disk(command: str, tmp_path: Path) -> None:
    done = end(command, "> /dev/full", tmp_path)
    assert done.returncode == 1
    assert "standard output can't be written (No space left on device)." in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
@posix
def test_a_reader_that_ends(tmp_path: Path) -> None:
    done = end("info en_mini en_mini en_mini", "| true", tmp_path)
    assert done.returncode == 1
    assert not [line for line in done.stderr.splitlines() if "pipe" in line.lower() or "Exception" in line]


# Errors and signals


def command_of(work: Any) -> typer.Typer:
    made = typer.Typer(cls=console.Commands)
    made.callback()(lambda: None)
    made.command("work")(with_exit_codes(work))
    return made


@pytest.mark.parametrize("error", [CommandError("wrong\x1b"), PermissionError("wrong\x1b")])
def test_standard_output_is_left_to_the_result(error: Exception) -> None:
    def work() -> None:
        print_error("and on")
        raise error

    result = CliRunner().invoke(command_of(work), ["work"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "and on" in result.stderr
    assert "wrong\\x1b" in result.stderr


def test_all_commands_have_these_exit_codes() -> None:
    for command in app.registered_commands:
        assert command.callback.__code__ is with_exit_codes(print).__code__  # type: ignore[union-attr]


@posix
@pytest.mark.parametrize("name", CODES)
def test_exit_codes(name: str) -> None:
    def work() -> None:
        with console.telling_if_stopped("stopped here"):
            signal.raise_signal(signal.Signals[name])

    before = [signal.getsignal(signal.Signals[one]) for one in CODES]
    result = CliRunner().invoke(command_of(work), ["work"])
    assert result.exit_code == CODES[name], result.output
    assert "stopped here" in result.stderr
    assert [signal.getsignal(signal.Signals[one]) for one in CODES] == before


# a command in a process of its own, which is at work until a signal comes
PROGRAM = """
import time
from spacy_elmo.cli import app, info

def work(*arguments):
    print("at work", flush=True)
    time.sleep(60)

info.__globals__["_find"] = work
app(args=["info", "en_mini"])
"""


@pytest.mark.slow
@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_exit_codes_of_processes(name: str) -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"at work\n"
    process.send_signal(signal.Signals[name])
    printed = b"".join(process.communicate(timeout=60))
    assert process.returncode == CODES[name], printed
    assert b"Traceback" not in printed


@posix
@pytest.mark.parametrize("name", CODES)
def test_a_signal_in_a_callback_of_hdf5_comes_after_it(name: str) -> None:
    """HDF5 calls the methods of this object, prints a traceback of what they raise, and goes on."""
    raw: Any = SimpleNamespace(tell=partial(signal.raise_signal, signal.Signals[name]))
    after = []

    def work() -> None:
        file = DeferredErrorFile(raw)
        file.tell()
        after.append(file)
        file.check()

    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        work()
    assert after
    assert stopped.value.args == (signal.Signals[name],)


@posix
@pytest.mark.parametrize("other", [KeyboardInterrupt, OSError])
def test_an_exception_of_a_library_gets_the_number_of_the_signal(other: type[BaseException]) -> None:
    """Ray raises a KeyboardInterrupt without one if a signal ends its wait."""

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            raise other from None

    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        work()
    assert stopped.value.args == (signal.SIGTERM,)


@posix
def test_an_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_change_nothing() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), []

    def block() -> None:
        with stoppable():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert seen == [before]
