"""The package is built with and without a compiler; what it holds."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from build_cases import FILES, build, unpacked

from spacy_elmo import kernels

pytestmark = pytest.mark.slow

SOURCES = {path.name for pattern in ("*.c", "*.h", "*.inc") for path in kernels.FOLDER.rglob(pattern)}
STRICT = {"CFLAGS": "-Wall -Wextra -Werror"}


def in_kernels(names: list[str]) -> set[str]:
    """Names of the files in the folder kernels but for Python's own."""
    paths = [Path(name) for name in names if "/spacy_elmo/kernels/" in name]
    return {path.name for path in paths if path.suffix not in ("", ".py")}


def without_python(folder: Path) -> set[str]:
    """Names of an unpacked wheel's files in the folder kernels but for Python's own."""
    return {path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".py"}


@pytest.mark.usefixtures("compiled")
def test_a_wheel_holds_the_library_and_its_sources(project: Path) -> None:
    """Built without a warning of the compiler: one would be an error here, and the library left out."""
    folder = unpacked(build(project, "wheel", **(STRICT if os.name == "posix" else {})))
    library = kernels.library_path(folder)
    assert library is not None
    assert without_python(folder) == SOURCES | {library.name}
    assert kernels.open_library(library) is not None


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_a_wheel_is_built_without_a_compiler_that_works(project: Path, compiler: str) -> None:
    if os.name != "posix":
        pytest.skip("CC names the compiler on POSIX alone")
    folder = unpacked(build(project, "wheel", CC=compiler))
    assert kernels.library_path(folder) is None
    assert without_python(folder) == SOURCES


def test_an_sdist_holds_what_a_wheel_is_built_from(project: Path) -> None:
    sdist = build(project, "sdist")
    with tarfile.open(sdist) as file:
        names = file.getnames()
    assert in_kernels(names) == SOURCES
    top = {name.partition("/")[2] for name in names}
    assert top >= set(FILES)
