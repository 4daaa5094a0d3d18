"""The package is built with and without a compiler, and for other processors; what it holds."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from build_cases import FILES, build, run_tests_on, unpacked

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
    wheel = build(project, "wheel", **(STRICT if os.name == "posix" else {}))
    assert wheel.name.split("-")[2:4] == ["py3", "none"]  # one wheel for all versions of Python
    folder = unpacked(wheel)
    library = kernels.library_path(folder)
    assert library is not None
    assert library.name in ("_loops.so", "_loops.pyd")
    assert files_below(folder) == FILES_BELOW | {library.name}
    assert kernels.open_library(library) is not None


def test_nothing_is_compiled_for_the_machine_that_builds_it(project: Path) -> None:
    if os.name != "posix":
        pytest.skip("the options of GNU compilers")
    # the build's own output has each compiler call with all its options
    code = (
        "import runpy, sys; sys.argv = ['setup.py', '-v', 'build_ext']; runpy.run_path('setup.py', run_name='__main__')"
    )
    environment = {**os.environ, "CC": "true"}  # the calls are enough
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    calls = [line for line in (done.stdout + done.stderr).splitlines() if " -c " in line]
    assert calls
    assert not [call for call in calls if "=native" in call or "-mavx" in call]


def test_clang_keeps_the_sums_of_products_in_registers() -> None:
    """In memory they take twice to three times the time."""
    if shutil.which("clang") is None or platform.machine() != "x86_64":
        pytest.skip("needs clang on x86-64")
    source = kernels.FOLDER / "scan.c"
    command = ["clang", "-O3", "-fno-math-errno", "-fno-trapping-math", "-S", "-emit-llvm", "-o", "-", str(source)]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    in_memory = [line for line in code.splitlines() if "= alloca" in line and " x <" in line]  # arrays of registers
    for name in ("avx2", "avx512", "avx512_bf16"):
        assert f"define void @{name}_layer(" in code.replace(" dso_local", "")
    assert not in_memory


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


# The tests of the loops on other processors: on AMX with its tiles in plain memory, and on older ones


TILES = Path(__file__).parent / "emulated_tiles.h"
ON_TILES = ("pretraining/test_lstm_amx.py", "pretraining/test_scan.py", "inference/test_lstm.py")


def test_on_emulated_tiles(project: Path, compiled: ctypes.CDLL) -> None:
    if not kernels.has("avx512_bf16", compiled):
        pytest.skip("this machine has no AVX-512 with bfloat16, or the compiler did not know it")
    setup = project / "setup.py"
    text = setup.read_text(encoding="utf8")
    assert '"-O3"' in text
    setup.write_text(text.replace('"-O3"', '"-O1"'), encoding="utf8")  # compiles in half the time
    run_tests_on(unpacked(build(project, "wheel", CFLAGS=f"-include {TILES}")), "amx and not neon", ON_TILES)


HEADER = Path(__file__).parent / "one_processor.h"
ON_PROCESSORS = ("modules/test_lstm.py", "modules/test_lstm_cell.py", "pretraining/test_scan.py")


@pytest.mark.parametrize("processor", [1, 3])
def test_on_one_processor(project: Path, compiled: ctypes.CDLL, processor: int) -> None:
    if not compiled.has_avx512():
        pytest.skip("the loops of x86-64 do not run here, or this processor runs no better ones than these")
    common = project / "spacy_elmo" / "kernels" / "common.h"
    flags = f"-include {HEADER} -DONE_PROCESSOR={processor} -DCOMMON_H=<{common}>"
    run_tests_on(unpacked(build(project, "wheel", CFLAGS=flags)), "compiled or equals_torch", ON_PROCESSORS)
