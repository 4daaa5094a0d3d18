"""The package is built with and without a compiler; what it holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from spacy_elmo import kernels

ROOT = Path(__file__).parents[2]
FILES = ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE")
SOURCES = {path.name for pattern in ("*.c", "*.h", "*.inc") for path in kernels.FOLDER.glob(pattern)}
STRICT = {"CFLAGS": "-Wall -Wextra -Werror"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what an installation is made of, without what was built here."""
    folder = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "*.hdf5", "*.pyc")
    shutil.copytree(ROOT / "spacy_elmo", folder / "spacy_elmo", ignore=ignored)
    for name in (*FILES, "MANIFEST.in"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder)
    return folder


def build(project: Path, kind: str, **environment: str) -> Path:
    """As pip does it: `kind` is wheel or sdist; returns the one file that came out."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}('dist')"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    (made,) = (project / "dist").iterdir()
    return made


def in_kernels(names: list[str]) -> set[str]:
    """Names of the files in the folder kernels but for Python's own."""
    paths = [Path(name) for name in names]
    return {path.name for path in paths if path.parent.name == "kernels" and path.name and path.suffix != ".py"}


def unpacked(wheel: Path) -> Path:
    """The folder kernels of an unpacked wheel."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(wheel.with_suffix(""))
    return wheel.with_suffix("") / "spacy_elmo" / "kernels"


@pytest.mark.usefixtures("compiled")
def test_a_wheel_holds_the_library_and_its_sources(project: Path) -> None:
    """Built without a warning of the compiler: one would be an error here, and the library left out."""
    folder = unpacked(build(project, "wheel", **(STRICT if os.name == "posix" else {})))
    library = kernels.library_path(folder)
    assert library is not None
    assert {path.name for path in folder.iterdir()} == SOURCES | {"__init__.py", library.name}
    assert kernels.open_library(library) is not None


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_a_wheel_is_built_without_a_compiler_that_works(project: Path, compiler: str) -> None:
    if os.name != "posix":
        pytest.skip("CC names the compiler on POSIX alone")
    folder = unpacked(build(project, "wheel", CC=compiler))
    assert kernels.library_path(folder) is None
    assert {path.name for path in folder.iterdir()} == SOURCES | {"__init__.py"}


def test_an_sdist_holds_what_a_wheel_is_built_from(project: Path) -> None:
    sdist = build(project, "sdist")
    with tarfile.open(sdist) as file:
        names = file.getnames()
    assert in_kernels(names) == SOURCES
    top = {name.partition("/")[2] for name in names}
    assert top >= set(FILES)
