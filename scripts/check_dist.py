"""The files of a release, installed in fresh environments outside the project, where smoke.py uses everything.

`make dist` calls this. uv makes the environments; it shares what several of them have, so that each costs little.

    python -m scripts.check_dist dist
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from datetime import date
from email import message_from_bytes
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from spacy_elmo.errors import CommandError

from .shared import run_command

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS, SMOKE = ROOT / "constraints.txt", ROOT / "scripts" / "smoke.py"
BESIDE = {"en_core": "spacy_elmo_en_core_softmax", "en_mini": "spacy_elmo_en_mini", "la_mini": "spacy_elmo_la_mini"}
# for root: permissions of files hold for it too
_AS_ANYBODY = [shutil.which("setpriv") or "setpriv", "--inh-caps=-all", "--bounding-set=-all"]


class Place(NamedTuple):
    """An environment. file: wheel or sdist. compiler: the one in PATH, perhaps none.

    python: the version. versions: of the libraries: "tested" (constraints.txt), "newest" or "lowest".
    alone: in a folder with blanks and ö, where nobody may write what is installed, and without a home.
    """

    name: str
    file: str = "wheel"
    compiler: str = ""
    python: str = "3.11"
    versions: str = "tested"
    alone: bool = False


PLACES = (
    Place("wheel"),
    Place("wheel, newest libraries", versions="newest"),
    Place("wheel, lowest libraries", versions="lowest"),
    Place("wheel, read-only folder, no home", alone=True),
    Place("sdist, gcc", "sdist", "gcc"),
    Place("sdist, clang", "sdist", "clang"),
    Place("sdist, no compiler", "sdist"),
)


def one_file(folder: Path, pattern: str) -> Path:
    """Return the one file of a folder that fits the pattern. Raises CommandError if there are none or several."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise CommandError(f"{folder}: {len(found)} files are {pattern}. Expected one: run make dist again.")
    return found[0].resolve()


def run(command: list[str], variables: Mapping[str, str], folder: Path | None = None) -> str:
    """Run a program, and return what it prints. Raises CommandError with all of its output if it fails."""
    done = subprocess.run(
        command, env=dict(variables), cwd=folder, capture_output=True, encoding="utf8", errors="replace", check=False
    )
    if done.returncode:
        raise CommandError(f"a step failed: {' '.join(command)}\nIts output:\n{done.stdout}{done.stderr}")
    return done.stdout


def variables_of(place: Place, folder: Path) -> dict[str, str]:
    """Return the environment's variables: in PATH are its own programs, and others only if it has a compiler."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPACY_ELMO", "CC"))}
    path = [str(folder / "environment" / "bin")]
    if place.compiler:
        path.append(os.environ["PATH"])
    kept["CC"] = place.compiler or "no-compiler"
    return kept | {"PATH": os.pathsep.join(path), "VIRTUAL_ENV": str(folder / "environment")}


def requirements_of(wheel: Path) -> list[str]:
    """Return what a wheel needs without its extras, as its metadata say."""
    with zipfile.ZipFile(wheel) as packed:
        name = next(name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(packed.read(name))
    return [needed for needed in metadata.get_all("Requires-Dist", []) if "extra ==" not in needed]


def install(place: Place, folder: Path, needs: list[str], files: list[Path]) -> dict[str, str]:
    """Make the environment. needs: requirements of the files. Returns its variables."""
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if uv is None:
        raise CommandError('the program uv is missing. Expected it beside Python: pip install -e ".[release]".')
    variables = variables_of(place, folder)
    run([uv, "venv", "-q", "--python", place.python, str(folder / "environment")], os.environ)
    pip = [uv, "pip", "install", "-q"]
    constraints = CONSTRAINTS
    if place.versions != "tested":  # of torch alone: other versions bring gigabytes of CUDA libraries
        constraints = folder / "constraints.txt"
        lines = CONSTRAINTS.read_text(encoding="utf8").splitlines()
        constraints.write_text("\n".join(line for line in lines if line.startswith("torch==")), encoding="utf8")
    how = ["--link-mode=copy"] if place.alone else []  # what is read-only there must not be shared
    run([*pip, *how, "-c", str(constraints), "torch"], variables)
    lowest = ["--resolution=lowest-direct"] if place.versions == "lowest" else []
    run([*pip, *how, *lowest, "-c", str(constraints), *needs], variables)
    # no cache: uv keeps what another environment built of the sdist
    run([*pip, *how, "--no-cache", "--no-deps", *map(str, files)], variables)
    return variables


def smoke(place: Place, folder: Path, files: dict[str, Path], beside: dict[str, Path]) -> dict[str, Any]:
    """Install a file in a new folder, and use everything there. Returns what --version and smoke.py print."""
    needs = requirements_of(files["wheel"])
    variables = install(place, folder, needs, [files[place.file], *beside.values()])
    python, work = str(folder / "environment" / "bin" / "python"), folder / "work"
    work.mkdir()
    script = shutil.copy(SMOKE, folder)
    start = [python]
    if place.alone:
        run(["chmod", "-R", "a-w", str(folder / "environment")], os.environ)
        variables["HOME"] = str(folder / "nowhere")
        start = [*_AS_ANYBODY, python] if os.geteuid() == 0 else start
    found = json.loads(run([*start, "-m", "spacy", "elmo", "--version", "--json"], variables, work))
    compiled = place.file == "wheel" or bool(place.compiler)
    if found["compiled_loops"] != compiled:
        raise CommandError(
            f"{place.name}: compiled loops are {found['compiled_loops']} ({found['compiled_loops_missing']}). "
            f"Expected {compiled}: build the files with gcc 12 or newer."
        )
    at = run([*start, "-c", "import spacy_elmo; print(spacy_elmo.__file__)"], variables, work).strip()
    if not Path(at).is_relative_to(folder):
        raise CommandError(f"the package was imported from {at}. Expected {folder}: unset what changes Python's path.")
    run([*start, "-m", "spacy", "elmo", "demo", "demo"], variables, work)
    told = run([*start, "-I", str(script), str(work), *beside], variables, work)
    result: dict[str, Any] = found | json.loads(told.splitlines()[-1])
    return result


def check_dist(
    dist: Annotated[Path, typer.Argument(help="Folder with the files of a release")],
    only: Annotated[str, typer.Option(help="Environments whose names have this")] = "",
    python: Annotated[str, typer.Option(help="Version of Python")] = "3.11",
) -> None:
    """Install the files of a release in fresh environments, use everything there, and print a table of it."""
    files = {"wheel": one_file(dist, "spacy_elmo-*manylinux*.whl"), "sdist": one_file(dist, "spacy_elmo-*.tar.gz")}
    beside = {bilm: one_file(dist, f"{package}-*.whl") for bilm, package in BESIDE.items()}
    for file in sorted(dist.iterdir()):
        typer.echo(f"{file.stat().st_size:>12,} bytes  {file.name}")
    typer.echo(
        "\n| date | environment | Python | libraries | loops | passed | seconds |\n|---|---|---|---|---|---|---|"
    )
    first: dict[str, list[float]] = {}
    places = [place for place in PLACES if only in place.name]
    if not places:
        names = ", ".join(place.name for place in PLACES)
        raise CommandError(f"--only is {only!r}, which none has. Expected a part of one of these names: {names}.")
    for place in places:
        if place.compiler and shutil.which(place.compiler) is None:
            raise CommandError(f"{place.name}: there is no {place.compiler}. Install it, or give --only others.")
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="b ö " if place.alone else None) as name:
            os.chmod(name, 0o755)
            found = smoke(place._replace(python=python), Path(name).resolve(), files, beside)
        for bilm, values in found["vectors"].items():  # the same everywhere, within what the docs promise
            np.testing.assert_allclose(values, first.setdefault(bilm, values), atol=1e-5, rtol=0)
        libraries = ", ".join(f"{library} {found[library]}" for library in ("torch", "spacy", "numpy", "h5py"))
        loops = ", ".join(found["instruction_sets"]) or "plain" if found["compiled_loops"] else "none"
        row = (place.name, found["python"].split()[-1], libraries, loops, f"{len(found['passed'])} steps")
        typer.echo(f"| {date.today()} | {' | '.join(row)} | {time.monotonic() - start:.0f} |")


if __name__ == "__main__":
    run_command(check_dist)
