"""What is said of the compiled loops: the kernel's own list of the processor's features agrees with it."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

import pytest

from spacy_elmo import kernels
from spacy_elmo.kernels import State, loops_state

FEATURES = {"AVX-512": "avx512bw", "AVX-512 BF16": "avx512_bf16", "AMX": "amx_bf16"}


@pytest.mark.usefixtures("compiled")
def test_the_instruction_sets_are_those_of_the_processor() -> None:
    if sys.platform != "linux" or not Path("/proc/cpuinfo").exists():
        pytest.skip("only Linux lists the processor's features in /proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    features = flags[1].split() if flags else []
    expected = tuple(name for name, feature in FEATURES.items() if feature in features)
    assert loops_state() == State(True, "", expected)


def test_loops_that_are_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda: None)
    monkeypatch.setenv(kernels.SWITCH, "0")
    assert loops_state() == State(False, "switched off by SPACY_ELMO_KERNELS=0", ())


@pytest.mark.parametrize(("path", "reason"), [(None, "not built"), (Path("loops.so"), "other sources")])
def test_loops_that_can_not_be_loaded(path: Path | None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "load", lambda: None)
    monkeypatch.setattr(kernels, "library_path", lambda: path)
    monkeypatch.delenv(kernels.SWITCH, raising=False)
    found = loops_state()
    assert not found.compiled
    assert reason in found.reason
    assert found.instruction_sets == ()


def test_a_machine_without_any_of_them(monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL) -> None:
    names = dict.fromkeys(kernels.INSTRUCTION_SETS, lambda library: False)
    monkeypatch.setattr(kernels, "INSTRUCTION_SETS", names)
    monkeypatch.setattr(kernels, "load", lambda: compiled)
    assert loops_state() == State(True, "", ())
