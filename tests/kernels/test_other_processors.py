"""The loops of training as compiled for other processors than this one: with AVX2 alone, and without."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from build_cases import ROOT, build, unpacked

pytestmark = pytest.mark.slow

HEADER = Path(__file__).parent / "one_processor.h"
TESTS = [ROOT / "tests" / name for name in ("modules/lstm/test_scan_combinations.py", "kernels/training/test_cell.py")]


@pytest.mark.parametrize("processor", [1, 3])
def test_on_one_processor(project: Path, compiled: ctypes.CDLL, processor: int) -> None:
    if not compiled.has_avx512():
        pytest.skip("the loops of x86-64 do not run here, or this processor runs no better ones than these")
    common = project / "spacy_elmo" / "kernels" / "common" / "common.h"
    flags = f"-include {HEADER} -DONE_PROCESSOR={processor} -DCOMMON_H=<{common}>"
    folder = unpacked(build(project, "wheel", CFLAGS=flags))
    built = folder.parents[1]
    options = ["-q", "-k", "compiled or equals_torch", "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg")]
    options += ["--rootdir", str(ROOT)]
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
