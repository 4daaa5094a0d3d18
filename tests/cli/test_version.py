"""`elmo --version`: what a bug report needs to say of an installation."""

import hashlib
import json
import platform
import sys
from importlib.metadata import version as version_of
from pathlib import Path

import pytest
from commands import invoke
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_elmo
from spacy_elmo import kernels
from spacy_elmo.kernels import State

WEIGHTS = Path(spacy_elmo.__file__).parent / "bilms" / "en_mini" / "weights.hdf5"


def run(*arguments: str, code: int = 0) -> str:
    return invoke("elmo", *arguments, code=code).output


def test_the_versions_are_those_that_are_installed() -> None:
    found = json.loads(run("--version", "--json"))
    assert found["spacy_elmo"] == spacy_elmo.__version__
    assert found["bilm"] == "en_mini"
    assert hashlib.sha256(WEIGHTS.read_bytes()).hexdigest().startswith(found["bilm_sha256"])
    assert len(found["bilm_sha256"]) == 12
    for name in ("torch", "spacy", "thinc", "h5py", "numpy"):
        assert found[name] == version_of(name)
    assert found["python"].endswith(platform.python_version())
    assert found["compiled_loops"] is (kernels.load() is not None)


def test_the_table_has_all_of_it() -> None:
    found = json.loads(run("--version", "--json"))
    output = " ".join(run("--version").split())
    for name in ("spacy_elmo", "bilm", "bilm_sha256", "torch", "torch_capability", "spacy", "h5py", "python"):
        assert found[name] in output, name
    for name in found["instruction_sets"]:
        assert name in output


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (State(True, "", ("AVX-512", "AMX")), ("compiled loops yes", "instruction sets AVX-512, AMX")),
        (State(True, "", ()), ("compiled loops yes", "none of AVX-512 and AMX: torch runs the LSTMs")),
        (State(False, "not built", ()), ("compiled loops no, not built; torch does the same",)),
    ],
    ids=["both", "compiled, for an old processor", "not compiled"],
)
def test_what_is_said_of_the_loops(found: State, told: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["spacy_elmo.cli.version"], "loops_state", lambda: found)
    output = " ".join(run("--version").split())
    for text in told:
        assert text in output


def test_json_needs_version() -> None:
    message = run("--json", code=2).replace("│", " ")  # the frame that typer draws
    assert "after --version" in " ".join(message.split())


def test_the_commands_are_listed_without_options() -> None:
    assert "init-pretrain-config" in CliRunner().invoke(app, ["elmo"]).output
