"""Which library is loaded, and that none is where it can't be trusted."""

from __future__ import annotations

import _ctypes
import ctypes
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
from commands import run

from spacy_elmo import ElmoEmbedder, kernels
from spacy_elmo.errors import LoopsWarning, SettingsError
from spacy_elmo.kernels import State, loops_state
from spacy_elmo.modules import load_bilm


@pytest.fixture
def copied(tmp_path: Path, compiled: ctypes.CDLL) -> Path:
    """The library that was built, beside a copy of its sources."""
    shutil.copytree(
        kernels.FOLDER, tmp_path, ignore=shutil.ignore_patterns("*.py", "*.so", "*.pyd"), dirs_exist_ok=True
    )
    library = kernels.library_path()
    assert library is not None
    return Path(shutil.copy(library, tmp_path))


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """load() as in a new process."""
    monkeypatch.delenv(kernels.SWITCH, raising=False)
    kernels.load.cache_clear()
    yield
    kernels.load.cache_clear()


def test_a_library_beside_its_sources(copied: Path) -> None:
    assert kernels.library_path(copied.parent) == copied
    library = kernels.open_library(copied)
    assert library is not None
    for name in kernels.SIGNATURES:
        assert getattr(library, name).restype is None


@pytest.mark.parametrize("name", ["scan.inc", "common.h", "library.c"])
def test_a_library_of_other_sources_is_not_used(copied: Path, name: str) -> None:
    source = copied.parent / name
    source.write_bytes(source.read_bytes().replace(b"\n", b"\r\n"))  # line ends of Windows do not count
    assert kernels.open_library(copied) is not None
    source.write_bytes(source.read_bytes() + b"\n/* changed */\n")
    assert kernels.open_library(copied) is None
    source.unlink()
    assert kernels.open_library(copied) is None


@pytest.mark.parametrize("content", ["", "no library", "cut off", "another library"])
def test_a_library_that_is_damaged_or_another_is_not_used(copied: Path, content: str) -> None:
    other = copied.with_name(f"other{copied.name}")
    if content == "another library":
        # Python itself, where ctypes is built into it
        shutil.copy(getattr(_ctypes, "__file__", None) or ctypes.pythonapi._name, other)
    else:
        other.write_bytes(copied.read_bytes()[:200] if content == "cut off" else content.encode())
    assert kernels.open_library(other) is None
    assert kernels.open_library(copied.with_name("missing.so")) is None


@pytest.mark.usefixtures("anew")
def test_none_is_loaded_where_none_was_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert kernels.library_path(tmp_path) is None
    monkeypatch.setattr(kernels, "library_path", lambda: None)
    with pytest.warns(LoopsWarning, match="loops were not built.* --no-cache-dir --no-binary spacy-elmo "):
        assert kernels.load() is None
    state = loops_state()  # without a second warning
    assert state == State(False, state.reason, ())
    assert state.reason.startswith("not built. With a C compiler, ")


@pytest.mark.usefixtures("anew")
def test_a_library_that_can_not_be_used_is_told_of(monkeypatch: pytest.MonkeyPatch, copied: Path) -> None:
    Path(copied.parent, "library.c").write_text("/* changed */")
    monkeypatch.setattr(kernels, "library_path", lambda: copied)
    with pytest.warns(LoopsWarning, match="built from other sources, or are damaged: .*pip install"):
        assert kernels.load() is None
    assert "other sources" in loops_state().reason


@pytest.mark.usefixtures("anew", "compiled")
@pytest.mark.parametrize(("value", "loaded"), [("0", False), ("1", True), ("", True)])
def test_the_switch(monkeypatch: pytest.MonkeyPatch, value: str, loaded: bool) -> None:
    monkeypatch.setenv(kernels.SWITCH, value)
    assert (kernels.load() is not None) is loaded
    assert loaded or loops_state() == State(False, "switched off by SPACY_ELMO_KERNELS=0", ())


FEATURES = {"AVX2": "avx2", "AVX-512": "avx512bw", "AVX-512 BF16": "avx512_bf16", "AMX": "amx_bf16"}


@pytest.mark.usefixtures("compiled")
def test_the_instruction_sets_are_those_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernels.LIMIT, raising=False)
    if sys.platform != "linux" or not Path("/proc/cpuinfo").exists():
        pytest.skip("only Linux lists the processor's features in /proc/cpuinfo")
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    features = flags[1].split() if flags else []
    expected = tuple(name for name, feature in FEATURES.items() if feature in features)
    assert loops_state() == State(True, "", expected)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("limit", "without"),
    [
        ("none", {"NEON", "AVX2", "AVX-512", "AVX-512 BF16", "AMX"}),
        ("neon", {"AVX2", "AVX-512", "AVX-512 BF16", "AMX"}),
        ("avx2", {"AVX-512", "AVX-512 BF16", "AMX"}),
        ("avx512", {"AMX"}),
        ("amx", set()),
        ("", set()),
    ],
)
def test_the_limit(limit: str, without: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(kernels.LIMIT, raising=False)
    everything = loops_state().instruction_sets
    monkeypatch.setenv(kernels.LIMIT, limit)
    assert loops_state().instruction_sets == tuple(name for name in everything if name not in without)


def test_an_unknown_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is told when a biLM is loaded, not when it first runs, and by a command before it begins."""
    monkeypatch.setenv(kernels.LIMIT, "sse")
    told = "SPACY_ELMO_ISA is 'sse'. Expected one of none, neon, avx2, avx512, amx"
    for load in (
        ElmoEmbedder,
        load_bilm,
        lambda: spacy.blank("xx").add_pipe("elmo"),
        lambda: kernels.has("avx2", None),
    ):
        with pytest.raises(SettingsError, match=re.escape(told)):
            load()
    (tmp_path / "a.txt").write_text("a b\n", encoding="utf8")
    output = run("elmo", "embed", tmp_path / "a.txt", tmp_path / "a.hdf5", code=1)
    assert output == f"✘ {told}, or nothing."
