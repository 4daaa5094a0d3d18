"""`elmo --version`: what a bug report needs to say of an installation."""

import hashlib
import json
import platform
from importlib.metadata import version as version_of
from pathlib import Path

import pytest
from commands import invoke, run
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo
from spacy_elmo.kernels import State

WEIGHTS = Path(spacy_elmo.__file__).parent / "bilms" / "en_core" / "weights.hdf5"


def test_the_versions_are_those_that_are_installed() -> None:
    found = json.loads(invoke("elmo", "--version", "--json").output)
    assert found["spacy_elmo"] == spacy_elmo.__version__
    assert found["bilm"] == "en_core"
    assert found["bilm_sha256"] == hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()[:12]
    for name in ("torch", "spacy", "thinc", "h5py", "numpy"):
        assert found[name].partition("+")[0] == version_of(name).partition("+")[0]  # torch has a build after the +
    assert found["python"].endswith(platform.python_version())
    output = run("elmo", "--version")
    for name in ("spacy_elmo", "bilm", "bilm_sha256", "torch", "torch_capability", "spacy", "h5py", "python"):
        assert found[name] in output, name


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (State(True, "", ("AVX-512", "AMX")), "compiled loops yes instruction sets AVX-512, AMX"),
        (State(True, "", ()), "compiled loops yes instruction sets none: torch runs the LSTMs"),
        (State(False, "not built", ()), "compiled loops no; torch does the same compiled loops missing not built"),
    ],
)
def test_what_is_said_of_the_loops(found: State, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spacy_elmo.kernels.loops_state", lambda: found)
    assert told in run("elmo", "--version")


def test_without_version() -> None:
    assert "after --version" in run("elmo", "--json", code=2).replace("│ ", "")  # the frame that typer draws
    assert "init-pretrain-config" in CliRunner().invoke(app, ["elmo"]).output
