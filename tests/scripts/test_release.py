"""What a release must not have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import check_dist
from scripts.check_dist import Environment, check, one_file
from spacy_elmo.errors import CommandError


def test_one_file(tmp_path: Path) -> None:
    for name in ("a-1.whl", "a-1.tar.gz", "b-1.whl"):
        (tmp_path / name).touch()
    assert one_file(tmp_path, "a-*.whl") == tmp_path / "a-1.whl"
    for pattern, n in (("c-*.whl", 0), ("*.whl", 2)):
        with pytest.raises(CommandError, match=f"{n} files are"):
            one_file(tmp_path, pattern)


@pytest.mark.parametrize(
    ("state", "place", "message"),
    [
        ('{"compiled_loops": false, "compiled_loops_missing": "not built"}', "inside", r"not used \(not built\)"),
        ('{"compiled_loops": true}', "outside", "imported from"),
    ],
)
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, place: str, message: str) -> None:
    def run(self: Environment, *arguments: str) -> str:
        return state if "--json" in arguments else str(tmp_path / place / "spacy_elmo" / "__init__.py")

    monkeypatch.setattr(check_dist.venv, "create", lambda folder, with_pip: None)  # pip's take seconds
    monkeypatch.setattr(Environment, "run", run)
    with pytest.raises(CommandError, match=message):
        check(tmp_path / "a.whl", tmp_path / "inside", "")


def test_an_environment_has_no_compiler_and_no_path_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_dist.venv, "create", lambda folder, with_pip: None)
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    environment = Environment(tmp_path, "")
    assert environment.variables["PATH"] == str(environment.python.parent)
    assert "PYTHONPATH" not in environment.variables
    environment.python = Path(sys.executable)
    with pytest.raises(CommandError, match=r"(?s)a step failed.*what it said"):
        environment.run("-c", "print('what it said'); raise SystemExit(3)")
