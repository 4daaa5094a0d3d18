"""What a release must not have."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scripts import check_dist
from scripts.check_dist import Place, one_file, run, smoke, variables_of
from spacy_elmo.errors import CommandError


def test_one_file(tmp_path: Path) -> None:
    for name in ("a-1.whl", "a-1.tar.gz", "b-1.whl"):
        (tmp_path / name).touch()
    assert one_file(tmp_path, "a-*.whl") == tmp_path / "a-1.whl"
    for pattern, n in (("c-*.whl", 0), ("*.whl", 2)):
        with pytest.raises(CommandError, match=f"{n} files are"):
            one_file(tmp_path, pattern)


@pytest.mark.parametrize(
    ("place", "state", "at", "message"),
    [
        (
            Place("w"),
            '{"compiled_loops": false, "compiled_loops_missing": "not built"}',
            "inside",
            r"False \(not built\)",
        ),
        (Place("s", "sdist"), '{"compiled_loops": true, "compiled_loops_missing": ""}', "inside", "Expected False"),
        (Place("w"), '{"compiled_loops": true}', "outside", "imported from"),
    ],
)
def test_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place, state: str, at: str, message: str
) -> None:
    def told(command: list[str], variables: dict[str, str], folder: Path) -> str:
        return state if "--json" in command else str(tmp_path / at / "spacy_elmo" / "__init__.py")

    folder = tmp_path / "inside"
    folder.mkdir()
    monkeypatch.setattr(check_dist, "install", lambda *_: variables_of(place, folder))  # torch's takes seconds
    monkeypatch.setattr(check_dist, "requirements_of", lambda wheel: [])
    monkeypatch.setattr(check_dist, "run", told)
    with pytest.raises(CommandError, match=message):
        smoke(place, folder, {"wheel": tmp_path / "a.whl", "sdist": tmp_path / "a.tar.gz"}, {})


def test_an_environment_that_there_is_not(tmp_path: Path) -> None:
    for name in (
        "spacy_elmo-1-manylinux.whl",
        "spacy_elmo-1.tar.gz",
        *(f"{name}-1.whl" for name in check_dist.BESIDE.values()),
    ):
        (tmp_path / name).touch()
    with pytest.raises(CommandError, match="Expected a part of one of these names: wheel,"):
        check_dist.check_dist(tmp_path, only="whel")


def test_an_environment_has_no_compiler_and_no_path_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "somewhere")
    variables = variables_of(Place("wheel"), tmp_path)
    assert variables["PATH"].startswith(str(tmp_path))
    assert os.pathsep not in variables["PATH"]
    assert "PYTHONPATH" not in variables
    assert variables_of(Place("sdist", "sdist", "gcc"), tmp_path)["CC"] == "gcc"
    with pytest.raises(CommandError, match=r"(?s)a step failed.*what it said"):
        run([sys.executable, "-c", "print('what it said'); raise SystemExit(3)"], variables)
