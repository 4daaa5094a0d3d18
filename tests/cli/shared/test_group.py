"""What all commands refuse in their arguments, and how they end if standard output can't be written."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spacy_elmo.cli import app

COMMANDS = sorted(command.name or command.callback.__name__ for command in app.registered_commands)  # type: ignore[union-attr]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_nul_character_is_refused(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX ends a path at NUL, so Python's functions for files raise ValueError for it."""
    monkeypatch.chdir(tmp_path)
    for arguments in (["a\0b", "c"], ["c", "a\0b"], ["c", "--train", "a\0b"]):
        result = CliRunner().invoke(app, [command, *arguments], terminal_width=200)
        assert result.exit_code == 2
        message = " ".join(result.output.replace("│", " ").split())
        assert r"'a\x00b' has a NUL character, which no path can have. Remove the character." in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_argument_is_refused(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty path is the current folder for Python, and an empty name would be taken for one that was left out."""
    monkeypatch.chdir(tmp_path)
    names = [["", "c"], ["c", ""], ["run.cfg", ""], ["./c", ""], ["--train", "a.txt", ""], ["--a.b=1", ""]]
    options = [["c", "--lang", ""], ["c", "--lang="], ["c", "-m", ""]]
    for arguments in [*names, *options]:
        result = CliRunner().invoke(app, [command, *arguments], terminal_width=200)
        assert result.exit_code == 2
        told = " ".join(result.output.replace("│", " ").split())
        option = next((argument for argument in arguments if argument in ("--lang", "--lang=", "-m", "--a.b=1")), "")
        assert (f"{option.rstrip('=')} is followed by an empty argument" if option else "an empty argument.") in told
    assert not list(tmp_path.iterdir())


def test_an_empty_setting_of_a_config(tmp_path: Path) -> None:
    for arguments in (["--paths.init", ""], ["--paths.init="]):
        result = CliRunner().invoke(app, ["pretrain", str(tmp_path / "a.cfg"), "out", *arguments])
        assert "an empty argument" not in result.output
        assert "doesnotexist" in "".join(result.output.replace("│", "").split())


def end(command: str, where: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "text.txt").write_text("the river bank\n" * 9000)
    line = f"set -o pipefail; {sys.executable} -m spacy elmo {command} {where}"
    return subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["info en_mini", "vocab text.txt -", "weights --help", "--version", "--help"])
def test_a_full_disk(command: str, tmp_path: Path) -> None:
    done = end(command, "> /dev/full", tmp_path)
    assert done.returncode == 1
    told = " ".join(done.stderr.split())
    assert "standard output can't be written (No space left on device)." in told
    assert "Traceback" not in told
    assert "Exception ignored" not in told


@pytest.mark.parametrize("command", ["vocab text.txt - --min-count 1", "info en_mini en_mini en_mini"])
def test_a_reader_that_ends(command: str, tmp_path: Path) -> None:
    done = end(command, "| true", tmp_path)
    assert done.returncode == 1
    assert not [line for line in done.stderr.splitlines() if "pipe" in line.lower() or "Exception" in line]
