"""The package is built with and without a compiler; what it holds."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest
from build_cases import FILES, build, unpacked

from spacy_elmo import kernels

pytestmark = pytest.mark.slow

PATTERNS = ("*.c", "*.h", "*.inc", "*.py")
FILES_BELOW = {path.relative_to(kernels.FOLDER).as_posix() for p in PATTERNS for path in kernels.FOLDER.rglob(p)}
STRICT = {"CFLAGS": "-Wall -Wextra -Werror"}


def files_below(folder: Path) -> set[str]:
    """Paths of an unpacked wheel's files below the folder kernels."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("compiled")
def test_a_wheel_holds_the_library_and_its_sources(project: Path) -> None:
    """Built without a warning of the compiler: one would be an error here, and the library left out."""
    folder = unpacked(build(project, "wheel", **(STRICT if os.name == "posix" else {})))
    library = kernels.library_path(folder)
    assert library is not None
    assert files_below(folder) == FILES_BELOW | {library.name}
    assert kernels.open_library(library) is not None


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_a_wheel_is_built_without_a_compiler_that_works(project: Path, compiler: str) -> None:
    if os.name != "posix":
        pytest.skip("CC names the compiler on POSIX alone")
    folder = unpacked(build(project, "wheel", CC=compiler))
    assert kernels.library_path(folder) is None
    assert files_below(folder) == FILES_BELOW


def test_an_sdist_holds_what_a_wheel_is_built_from(project: Path) -> None:
    sdist = build(project, "sdist")
    with tarfile.open(sdist) as file:
        names = file.getnames()
    below = {name.partition("/spacy_elmo/kernels/")[2] for name in names}
    assert {name for name in below if Path(name).suffix} == FILES_BELOW
    top = {name.partition("/")[2] for name in names}
    assert top >= set(FILES)
