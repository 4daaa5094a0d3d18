"""The commands that ask the layers: they are real, and what they say is written with where it was measured."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts.inside.inside_runs import COMMANDS, main
from scripts.shared import elmo_command, measurement
from spacy_elmo.errors import CommandError


def test_what_a_command_prints_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = []

    def run(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command[1:])
        return subprocess.CompletedProcess(command, 0, '{"layers": []}')

    monkeypatch.setattr(elmo_command.subprocess, "run", run)
    monkeypatch.setattr(measurement, "commit_of", lambda project: "")
    main(["probe_tag"])
    result = json.loads((tmp_path / "results/inside/probe_tag.json").read_text(encoding="utf-8"))
    assert result["result"] == {"layers": []}
    assert asked == [shlex.split(result["command"])[1:]]
    assert result["command"].startswith("python -m spacy elmo probe corpus/tagger/en_ewt-ud-train.spacy ")
    assert "--attr tag --random --json" in result["command"]


@pytest.mark.slow
def test_a_command_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # without corpora
    with pytest.raises(CommandError, match="The command was: python -m spacy elmo wsd"):
        main(["senses"])
    assert not (tmp_path / "results").exists()


def test_unknown_question() -> None:
    with pytest.raises(CommandError, match=f"the question is 'x'. Expected one of {', '.join(COMMANDS)}"):
        main(["x"])
