"""What all commands refuse in their arguments."""

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
