"""The tests of the loops on AMX where there is none: all of them, with its tiles in plain memory."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from build_cases import ROOT, build, unpacked

from spacy_elmo import kernels

pytestmark = pytest.mark.slow

TILES = Path(__file__).parent / "emulated_tiles.h"
FILES = ("kernels/training/test_amx.py", "inference/lstm/test_stacks.py", "modules/lstm/test_scan_combinations.py")
TESTS = [ROOT / "tests" / name for name in FILES]


def test_on_emulated_tiles(project: Path, compiled: ctypes.CDLL) -> None:
    if not kernels.has_avx512_bf16(compiled):
        pytest.skip("this machine has no AVX-512 with bfloat16, or the compiler did not know it")
    setup = project / "setup.py"
    text = setup.read_text(encoding="utf8")
    assert '"-O3"' in text
    setup.write_text(text.replace('"-O3"', '"-O1"'), encoding="utf8")  # compiles in half the time
    folder = unpacked(build(project, "wheel", CFLAGS=f"-include {TILES}"))
    built = folder.parents[1]
    options = ["-q", "-k", "amx", "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(ROOT)]
    options += ["-o", f"pythonpath={built} {ROOT / 'tests' / 'helpers'}"]  # the package that was built comes first
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, TESTS)],
        cwd=built,
        env={**os.environ, "PYTHONPATH": str(built)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    closing = result.stdout.splitlines()[-1]
    assert " passed" in closing
    assert "skipped" not in closing, result.stdout
