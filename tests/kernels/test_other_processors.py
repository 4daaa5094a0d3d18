"""The loops of training as compiled for other processors than this one: with AVX2 alone, and without."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from build_cases import build, run_tests_on, unpacked

pytestmark = pytest.mark.slow

HEADER = Path(__file__).parent / "one_processor.h"
FILES = ("modules/lstm/test_scan_combinations.py", "kernels/training/test_cell.py")


@pytest.mark.parametrize("processor", [1, 3])
def test_on_one_processor(project: Path, compiled: ctypes.CDLL, processor: int) -> None:
    if not compiled.has_avx512():
        pytest.skip("the loops of x86-64 do not run here, or this processor runs no better ones than these")
    common = project / "spacy_elmo" / "kernels" / "common" / "common.h"
    flags = f"-include {HEADER} -DONE_PROCESSOR={processor} -DCOMMON_H=<{common}>"
    run_tests_on(unpacked(build(project, "wheel", CFLAGS=flags)), "compiled or equals_torch", FILES)
