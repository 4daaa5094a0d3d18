"""The tests of the loops on AMX where there is none: all of them, with its tiles in plain memory."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from build_cases import build, run_tests_on, unpacked

from spacy_elmo import kernels

pytestmark = pytest.mark.slow

TILES = Path(__file__).parent / "emulated_tiles.h"
FILES = ("modules/test_lstm_amx.py", "inference/test_lstm.py", "modules/test_lstm.py")


def test_on_emulated_tiles(project: Path, compiled: ctypes.CDLL) -> None:
    if not kernels.has("avx512_bf16", compiled):
        pytest.skip("this machine has no AVX-512 with bfloat16, or the compiler did not know it")
    setup = project / "setup.py"
    text = setup.read_text(encoding="utf8")
    assert '"-O3"' in text
    setup.write_text(text.replace('"-O3"', '"-O1"'), encoding="utf8")  # compiles in half the time
    run_tests_on(unpacked(build(project, "wheel", CFLAGS=f"-include {TILES}")), "amx and not neon", FILES)


HEADER = Path(__file__).parent / "one_processor.h"
FILES_OTHER_PROCESSORS = ("modules/test_lstm.py", "modules/test_lstm_cell.py")


@pytest.mark.parametrize("processor", [1, 3])
def test_on_one_processor(project: Path, compiled: ctypes.CDLL, processor: int) -> None:
    if not compiled.has_avx512():
        pytest.skip("the loops of x86-64 do not run here, or this processor runs no better ones than these")
    common = project / "spacy_elmo" / "kernels" / "common" / "common.h"
    flags = f"-include {HEADER} -DONE_PROCESSOR={processor} -DCOMMON_H=<{common}>"
    run_tests_on(unpacked(build(project, "wheel", CFLAGS=flags)), "compiled or equals_torch", FILES_OTHER_PROCESSORS)
