"""How commands print, fail and stop, whatever they do; the names of their options; files to write, and progress."""

import io
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import spacy
import typer
from commands import run
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner
from wasabi import Printer

from spacy_elmo import errors
from spacy_elmo.cli import COMMANDS as TOLD
from spacy_elmo.cli import app, console, load
from spacy_elmo.cli.console import TerminalPrinter, plain_warnings, print_error, stoppable, with_exit_codes
from spacy_elmo.cli.shared import shown_bar
from spacy_elmo.errors import CommandError, OtherLanguageWarning, TruncatedWordsWarning
from spacy_elmo.formats.vectors import DeferredErrorFile
from spacy_elmo.modules import loading

BILM = Path(__file__).parents[1] / "golden" / "random_a"
CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
COMMANDS: dict[str, Any] = {name: load(name) for name in TOLD}
posix = pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# What is printed


@pytest.mark.parametrize(("terminal", "variable"), [(True, None), (True, "NO_COLOR"), (False, None)])
def test_colours(terminal: bool, variable: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal has them, unless they are not wanted; a file or pipe has none, also of spaCy's own messages."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, err = (Terminal() if terminal else io.StringIO() for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    if variable is not None:
        monkeypatch.setenv(variable, "1")
    with console.colours_on_terminals():
        TerminalPrinter().divider("layer 1")
        print_error("wrong")
        Printer().fail("wrong")
    for printed, words in ((out.getvalue(), ["layer 1", "✘ wrong"]), (err.getvalue(), ["✘ wrong"])):
        assert ("\x1b[" in printed) == (terminal and variable is None)
        assert all(word in printed for word in words)


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
    return ["elmo", "similar", str(tmp_path / "t.txt"), "--model", str(BILM), "--word", "bank"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_an_encoding_without_all_characters(encoding: str, accents: list[str]) -> None:
    done = CliRunner(charset=encoding).invoke(spacy_app, [*accents, "--json"])
    assert json.loads(done.stdout)["query"]["sentence"] == "bank é \U0001f600"
    assert ("é \U0001f600" in done.stdout) == (encoding == "utf-8")
    done = CliRunner(charset=encoding).invoke(spacy_app, accents)
    assert ("*bank* é \U0001f600" if encoding == "utf-8" else "*bank* é \\U0001f600") in done.stdout


@pytest.mark.filterwarnings("always")
def test_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """The package's own are told in a plain line, without a line of code, and without attributes of objects."""
    before = warnings.showwarning
    with warnings.catch_warnings(record=True) as caught, console.colours_on_terminals(), plain_warnings():
        warnings.warn("of this package", OtherLanguageWarning, stacklevel=1)
        warnings.warn(TruncatedWordsWarning("of words", "n_truncated counts them"), stacklevel=1)
        warnings.warn("of another one", UserWarning, stacklevel=1)
        warnings.warn_explicit("of its code", UserWarning, loading.__file__, 1)
    assert warnings.showwarning is before
    told = capsys.readouterr().err
    assert "of this package" in told
    assert "of its code" in told
    assert "of words\n" in told
    assert ".py" not in told
    assert [str(warning.message) for warning in caught] == ["of another one"]


# Arguments

_EMPTY = "an empty argument after"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        *(([""], _EMPTY), (["run.cfg", ""], _EMPTY), (["--lang="], _EMPTY), (["c", "-m", ""], _EMPTY)),
        *((["--a.b=1", ""], _EMPTY), (["no.cfg", "out", "--paths.init", ""], "does not exist")),
        (["no.cfg", "out", "--paths.init="], "does not exist"),  # a setting of a config may be empty
    ],
)
def test_empty_arguments_are_refused(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["pretrain", *arguments], terminal_width=200)
    assert result.exit_code == 2
    assert told in result.output


def options(command: Any) -> dict[str, set[str]]:
    return {
        parameter.name: set(parameter.opts) for parameter in command.params if parameter.param_type_name == "option"
    }


def test_short_options_are_spacys() -> None:
    """If a command of ours has an option that spaCy's commands have, it has the same short name."""
    theirs = typer.main.get_command(spacy_app).commands  # type: ignore[attr-defined]
    same = {"lang": "convert", "force": "apply", "gpu_id": "apply", "batch_size": "apply", "code": "apply"}
    for command in COMMANDS.values():
        for option, spellings in options(command).items():
            if option in same:
                assert any(spellings >= other for other in options(theirs[same[option]]).values())
    with_code = [name for name, command in COMMANDS.items() if "code" in options(command)]
    assert with_code == ["info", "embed", "similar", "neighbours", "weights", "probe", "wsd"]  # all that load pipelines


WITHOUT_TORCH = f"""
import sys, types
sys.modules["torch"] = None  # spaCy, which imports it if it can, does without
package = types.ModuleType("spacy_elmo")
package.__path__ = [{str(Path(errors.__file__).parent)!r}]
sys.modules["spacy_elmo"] = package
from spacy_elmo.cli import app
app(["--help"])
"""


def test_help_needs_no_torch_and_no_command() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in COMMANDS)


def test_standard_input_that_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.text.files.sys", type("", (), {"stdin": None}))  # Python's value for it
    assert "standard input: damaged, cut short or unreadable (it is closed, or has text, not bytes)" in run(
        "elmo", "vocab", "-", tmp_path / "v.txt", code=1
    )


# Progress


def test_plain_lines_in_a_log_file(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_bar(total=40, unit=" sentences", desc="reading") as bar:
        bar.update(40)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("reading:   0% 0/40 ")
    assert last.startswith("reading: 100% 40/40 ")


@pytest.mark.parametrize("to", [Terminal(), None])
def test_a_bar_on_a_terminal_and_without_standard_error(to: Terminal | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", to)
    with shown_bar(total=40) as bar:
        bar.update(40)
    assert to is None or ("40/40" in to.getvalue() and "\r" in to.getvalue())


# Errors and signals


def command_of(work: Any) -> typer.Typer:
    made = typer.Typer()
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
    for command in COMMANDS.values():
        assert command.callback.__wrapped__.__code__ is with_exit_codes(print).__code__


@posix
@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("other", [KeyboardInterrupt, OSError])
def test_exit_codes(name: str, other: type[BaseException]) -> None:
    """Also if a library raises another exception in the place of the signal's, as Ray does."""

    def work() -> None:
        try:
            signal.raise_signal(signal.Signals[name])
        except KeyboardInterrupt:
            raise other from None

    before = [signal.getsignal(signal.Signals[one]) for one in CODES]
    result = CliRunner().invoke(command_of(work), ["work"])
    assert result.exit_code == CODES[name], result.output
    assert "stopped. Earlier files stay" in result.stderr
    assert [signal.getsignal(signal.Signals[one]) for one in CODES] == before


@posix
def test_a_signal_in_a_callback_of_hdf5_comes_after_it(tmp_path: Path) -> None:
    """HDF5 calls the methods of this object, prints a traceback of what they raise, and goes on."""
    after = []

    class Stopped(DeferredErrorFile):
        def tell(self) -> int:
            signal.raise_signal(signal.SIGTERM)
            return super().tell()

    def work() -> None:
        with Stopped(tmp_path / "file", "wb") as file:
            file.tell()
            after.append(file)
            file.check()

    with pytest.raises(KeyboardInterrupt) as stopped, stoppable():
        work()
    assert after
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


# Processes as a user starts them

CODE = """
from spacy.language import Language

@Language.component("of_a_user")
def of_a_user(doc):
    return doc
"""


@pytest.mark.slow
@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no full device")
def test_a_standard_output_that_is_lost(tmp_path: Path) -> None:
    """A full disk, a reader that ends, and standard error that is closed and an encoding as on Windows."""
    (tmp_path / "text.txt").write_text("the river bank\n" * 9000)
    (tmp_path / "t.txt").write_text("bank \U0001f600 \u4e2d\n", encoding="utf8")

    def end(command: str) -> subprocess.CompletedProcess[bytes]:
        line = f"set -o pipefail; {sys.executable} -m spacy elmo {command}"
        return subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False, env=environment)

    environment = dict(os.environ)
    done = end("vocab text.txt - > /dev/full")
    assert done.returncode == 1
    assert b"standard output can't be written (No space left on device)." in b" ".join(done.stderr.split())
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    done = end("info en_core en_core en_core | true")
    assert done.returncode == 1
    assert not [line for line in done.stderr.splitlines() if b"pipe" in line.lower() or b"Exception" in line]
    environment |= {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = end("vocab t.txt - 2>&-")
    assert done.stdout.decode("utf8").split() == ["<S>", "</S>", "<UNK>", "bank", "\U0001f600", "\u4e2d"]


@pytest.mark.slow
def test_code_is_imported_before_a_pipeline_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE, encoding="utf8")
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": {"bilm": str(BILM)}})
    nlp.to_disk(tmp_path / "pipeline")
    config = tmp_path / "pipeline/config.cfg"
    text = config.read_text(encoding="utf8").replace('["elmo"]', '["elmo","of_a_user"]')
    config.write_text(text + '\n[components.of_a_user]\nfactory = "of_a_user"\n', encoding="utf8")
    (tmp_path / "text.txt").write_text("a bank\nthe bank\n", encoding="utf8")
    command = ("elmo", "similar", tmp_path / "text.txt", "--model", tmp_path / "pipeline", "--word", "bank")
    assert "of_a_user" in run(*command, code=1)
    assert "layer 1" in run(*command, "-c", tmp_path / "code.py")
