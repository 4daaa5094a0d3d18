"""The files of a release, each installed in a fresh environment outside the project, where it runs the demo.

The wheel is installed and run without a compiler in PATH, and must use its compiled loops. `make dist` calls this.

    python -m scripts.check_dist dist
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import venv
from pathlib import Path
from typing import Annotated

import typer

from spacy_elmo.errors import CommandError

from .shared import run_command

CONSTRAINTS = Path(__file__).resolve().parents[1] / "constraints.txt"
BESIDE = {"en_core": "spacy_elmo_en_core_softmax", "en_mini": "spacy_elmo_en_mini"}  # what `evaluate` needs, by biLM
WORDS = "There is a bank .\n"


def one_file(folder: Path, pattern: str) -> Path:
    """Return the one file of a folder that fits the pattern. Raises CommandError if there are none or several."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise CommandError(f"{folder}: {len(found)} files are {pattern}. Expected one: run make dist again.")
    return found[0].resolve()


class Environment:
    """A fresh environment in a new folder. path: where programs are looked for beside its own, as in PATH."""

    def __init__(self, folder: Path, path: str) -> None:
        venv.create(folder / "environment", with_pip=True)
        self.folder = folder
        self.python = folder / "environment" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self.variables = os.environ | {"PATH": os.pathsep.join(filter(None, (str(self.python.parent), path)))}
        for name in ("PYTHONPATH", "SPACY_ELMO_KERNELS"):
            self.variables.pop(name, None)

    def run(self, *arguments: str) -> str:
        """Run Python, and return what it prints. Raises CommandError with all of its output if it fails."""
        command = [str(self.python), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.variables, capture_output=True, encoding="utf8", errors="replace"
        )
        if done.returncode:
            raise CommandError(f"a step failed: {' '.join(command)}\nIts output:\n{done.stdout}{done.stderr}")
        return done.stdout

    def install(self, *arguments: str) -> None:
        self.run("-m", "pip", "install", "-q", "-c", str(CONSTRAINTS), *arguments)


def check(file: Path, folder: Path, path: str, *options: str) -> Environment:
    """Install a wheel or an sdist in a new folder, and run the demo there with its compiled loops. options: of pip."""
    environment = Environment(folder, path)
    environment.install("torch")  # first: constraints.txt says which, and it is by far the largest
    environment.install(*options, str(file))
    found = json.loads(environment.run("-m", "spacy", "elmo", "--version", "--json"))
    if not found["compiled_loops"]:
        raise CommandError(
            f"{file.name}: its compiled loops are not used ({found['compiled_loops_missing']}). Expected a file with "
            "compiled loops: build it with gcc 12 or newer."
        )
    demo = environment.run("-m", "spacy", "elmo", "demo", "out")
    place = environment.run("-c", "import spacy_elmo; print(spacy_elmo.__file__)").strip()
    if not Path(place).is_relative_to(folder):
        raise CommandError(
            f"the package was imported from {place}. Expected {folder}: unset what changes Python's path."
        )
    typer.echo(f"{file.name}: installed, the demo ran. {json.dumps(found)}")
    typer.echo(demo)
    return environment


def check_dist(dist: Annotated[Path, typer.Argument(help="Folder with the files of a release")]) -> None:
    """Install the files of a release in fresh environments, and run the demo from each."""
    wheel, sdist = one_file(dist, "spacy_elmo-*manylinux*.whl"), one_file(dist, "spacy_elmo-*.tar.gz")
    beside = {bilm: one_file(dist, f"{package}-*.whl") for bilm, package in BESIDE.items()}
    for file in sorted(dist.iterdir()):
        typer.echo(f"{file.stat().st_size:>12,} bytes  {file.name}")
    with tempfile.TemporaryDirectory() as name:
        for part in ("wheel", "sdist"):
            Path(name, part).mkdir()
        environment = check(wheel, Path(name, "wheel"), "", "--only-binary", ":all:")
        environment.install("--no-deps", *map(str, beside.values()))
        (environment.folder / "text.txt").write_text(WORDS, encoding="utf8")
        for bilm in beside:
            typer.echo(environment.run("-m", "spacy", "elmo", "evaluate", bilm, "text.txt"))
        check(sdist, Path(name, "sdist"), os.environ["PATH"])


if __name__ == "__main__":
    run_command(check_dist)
