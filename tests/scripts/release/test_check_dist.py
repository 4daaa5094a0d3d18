"""The check of a release's files: what it refuses, and what its fresh environments see."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scripts.release.check_dist import Environment, check, one_file
from spacy_elmo.errors import CommandError


def test_one_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"\*\.whl are none"):
        one_file(tmp_path, "*.whl")
    for name in ("a-1.whl", "a-1.tar.gz"):
        (tmp_path / name).touch()
    assert one_file(tmp_path, "*.whl") == tmp_path / "a-1.whl"
    (tmp_path / "a-2.whl").touch()
    with pytest.raises(CommandError, match=r"are a-1\.whl, a-2\.whl"):
        one_file(tmp_path, "*.whl")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes environments without their files: pip's take seconds."""
    monkeypatch.setattr("scripts.release.check_dist.venv.create", lambda folder, with_pip: None)


@pytest.mark.usefixtures("made")
def test_an_environment_has_no_compiler_and_no_path_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    monkeypatch.setenv("SPACY_ELMO_KERNELS", "0")
    environment = Environment(tmp_path, "")
    assert environment.variables["PATH"] == str(environment.python.parent)
    assert not {"PYTHONPATH", "SPACY_ELMO_KERNELS"} & set(environment.variables)
    assert Environment(tmp_path, "/usr/bin").variables["PATH"] == f"{environment.python.parent}{os.pathsep}/usr/bin"


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("state", "place", "message"),
    [
        ('{"compiled_loops": false, "compiled_loops_missing": "not built"}', "inside", r"not used \(not built\)"),
        ('{"compiled_loops": true}', "outside", "imported from"),
        ('{"compiled_loops": true}', "inside", ""),
    ],
    ids=["no loops", "another package", "right"],
)
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, place: str, message: str) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()

    def run(self: Environment, *arguments: str) -> str:
        return state if "--json" in arguments else str(tmp_path / place / "spacy_elmo" / "__init__.py")

    monkeypatch.setattr(Environment, "run", run)
    if message:
        with pytest.raises(CommandError, match=message):
            check(tmp_path / "a.whl", folder, "")
    else:
        assert check(tmp_path / "a.whl", folder, "").folder == folder


@pytest.mark.usefixtures("made")
def test_a_step_that_fails(tmp_path: Path) -> None:
    environment = Environment(tmp_path, "")
    environment.python = Path(sys.executable)
    with pytest.raises(CommandError, match=r"(?s)a step failed.*what it said"):
        environment.run("-c", "print('what it said'); raise SystemExit(3)")
