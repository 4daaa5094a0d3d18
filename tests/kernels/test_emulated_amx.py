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
TESTS = [ROOT / "tests" / "kernels" / "test_amx.py", ROOT / "tests" / "inference" / "lstm" / "test_stacks.py"]


def test_on_emulated_tiles(project: Path, compiled: ctypes.CDLL) -> None:
    if not kernels.has_avx512_bf16(compiled):
        pytest.skip("this machine has no AVX-512 with bfloat16, or the compiler did not know it")
    folder = unpacked(build(project, "wheel", CFLAGS=f"-include {TILES}"))
    options = ["-q", "-k", "amx", "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg"), "--rootdir", str(ROOT)]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, TESTS)],
        cwd=folder.parents[1],  # its spacy_elmo is found first
        env={**os.environ, "PYTHONPATH": str(folder.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    closing = result.stdout.splitlines()[-1]
    assert " passed" in closing
    assert "skipped" not in closing, result.stdout
