"""The process that reads untrusted files: what it imports, how it ends, answers that do not fit, and weights."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_files import W_0, Arrays, assert_same, make_heap_cycle, refused, rewrite_as

import spacy_elmo
from spacy_elmo.errors import WeightsError
from spacy_elmo.formats import BiLMOptions, contents, read_weights, untrusted
from spacy_elmo.formats import weights as weights_module
from spacy_elmo.formats.untrusted import ask

PACKAGE = Path(spacy_elmo.__file__).parent
READY = "import sys, os, time, json, signal\nsys.stdin.buffer.readline()\nos.write(1, b'ready\\n')\n"


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that sets the program that is started in the place of the real one."""
    return lambda program: monkeypatch.setattr(untrusted, "_START", program)


def asked(max_bytes: int = 0) -> tuple[Any, dict[str, np.ndarray]]:
    return ask(contents._kind, "the file", {}, WeightsError, max_bytes)


def unanswered(*parts: str, max_bytes: int = 0) -> None:
    with pytest.raises(WeightsError) as error:
        asked(max_bytes)
    message = str(error.value)
    for part in ("the file: ", *parts):
        assert part in message, message


def answer(*arrays: object, data: bytes = b"") -> str:
    line = json.dumps({"facts": [1], "arrays": arrays}).encode() + b"\n" + data
    return f"{READY}os.write(1, {line!r})\n"


def test_facts_and_arrays(other: Callable[[str], None]) -> None:
    values = np.arange(6, dtype=">f8").reshape(2, 3)
    other(answer(["a", ">f8", [2, 3]], ["b", "|u1", [0]], data=values.tobytes()))
    facts, arrays = asked(48)
    assert facts == [1]
    assert list(arrays) == ["a", "b"]
    assert arrays["a"].dtype == np.dtype(">f8")
    assert arrays["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["b"].shape == (0,)
    unanswered("does not fit: more than 47 bytes", max_bytes=47)


@pytest.mark.parametrize(
    "program",
    [
        *(
            answer(described, data=bytes(100))
            for described in (["a", "O", [1]], ["a", "|V8", [1]], ["a", "<f4", [-1]], ["a", "<f4", [1.5]])
        ),
        *(answer(described, data=bytes(100)) for described in (["a", "<f4", 3], ["a", 4, [1]], "a")),
        *(f"{READY}sys.stdout.write({line} + '\\n')" for line in ("'[]'", "'x'", "'[' * 100_000")),
    ],
)
def test_an_answer_that_is_none(other: Callable[[str], None], program: str) -> None:
    other(program)
    unanswered("gave an answer that does not fit", "SHA-256", max_bytes=1000)


BUSY = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 2))\nwhile True: pass\n"
CRASH = "the HDF5 library crashed on this file, in a process of its own"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        *((f"{READY}os.kill(os.getpid(), signal.{name})", f"{CRASH} ({name})") for name in ("SIGSEGV", "SIGKILL")),
        (answer(["a", "<f4", [2]], data=bytes(7)), f"{CRASH} (exit code 0)"),
        ("raise SystemExit('there is no h5py')", "could not be started (there is no h5py)"),
        pytest.param(READY + BUSY, "came to no end on this file within its limit of comp", marks=pytest.mark.slow),
    ],
)
def test_how_it_ends(other: Callable[[str], None], program: str, message: str) -> None:
    other(program)
    unanswered(message, max_bytes=8)


@pytest.mark.slow
def test_any_other_exception_is_told(tmp_path: Path) -> None:
    """Here the task is a function that does not return a result."""
    with pytest.raises(WeightsError, match=r"can't be read \(ValueError: .*get it again"):
        ask(os.lstat, tmp_path, {}, WeightsError, 0)


def test_it_imports_neither_torch_nor_spacy(tmp_path: Path) -> None:
    """Nor anything from the folder in which it is started."""
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')", encoding="utf8")
    task = {"parent": os.getpid(), "module": contents.__name__, "function": "_kind", "arguments": {"path": "gone"}}
    command = [sys.executable, "-X", "importtime", "-I", "-c", untrusted._START, str(PACKAGE)]
    log = tmp_path / "log"
    with log.open("wb") as file:
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=file, cwd=tmp_path)
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(task).encode() + b"\n")
        child.stdin.flush()
        got = child.stdout.read()
    assert got.startswith(b"ready\n")
    assert b"gone: no such file" in got
    modules = {line.rpartition("|")[2].strip() for line in log.read_text(encoding="utf8").splitlines()}
    assert "spacy_elmo.formats.softmax" in modules  # which the task's module imports
    assert not modules & {"torch", "spacy", "thinc", "multiprocessing"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills it at once, and has /proc")
def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """Its task waits for the other end of a pipe."""
    os.mkfifo(tmp_path / "pipe")
    lines = [
        "import sys, types",
        f"package = types.ModuleType('spacy_elmo'); package.__path__ = [{str(PACKAGE)!r}]",
        "sys.modules['spacy_elmo'] = package",
        "import io; from spacy_elmo.formats.untrusted import ask",
        f"ask(io.open_code, {str(tmp_path / 'pipe')!r}, {{}}, ValueError, 0)",
    ]
    parent = subprocess.Popen([sys.executable, "-c", "\n".join(lines)])
    try:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
        # imports may start other processes, which soon end
        while not (started := [n for n in children.read_text(encoding="ascii").split() if has_started_its_task(n)]):
            assert parent.poll() is None
            time.sleep(0.02)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(60)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{started[0]}").exists() and "Z" not in state_of(started[0]):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def has_started_its_task(number: str) -> bool:
    """Whether a process has set its limits, after which its task begins."""
    try:
        limits = Path(f"/proc/{number}/limits").read_text(encoding="ascii")
    except OSError:  # it has ended
        return False
    return re.search(r"Max file size +0 ", limits) is not None


def state_of(number: str) -> str:
    """The state of a process, Z for one that has ended."""
    try:
        return Path(f"/proc/{number}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


# Weights of strangers


def test_answers_that_are_no_weights(
    weights: Path, options: BiLMOptions, arrays: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that a file has taken over may answer anything."""
    name = "lstm.layers.0.bias"
    wrong = {
        "missing": {key: values for key, values in arrays.items() if key != name},
        "shape": arrays | {name: np.zeros((2, 31), np.float32)},
        "float64": arrays | {name: np.zeros((2, 32))},
        "NaN": arrays | {name: np.full((2, 32), np.nan, np.float32)},
    }
    for part, answer in wrong.items():
        monkeypatch.setattr(weights_module, "ask", lambda *args, answer=answer: (None, answer))
        with pytest.raises(WeightsError, match=f"{name}.*{part}"):
            read_weights(weights, options, untrusted=True)


def test_the_same_arrays(weights: Path, options: BiLMOptions, arrays: Arrays) -> None:
    other = weights.with_name("w\udcff \n.hdf5")  # not UTF-8
    weights.rename(other)
    got = read_weights(other, options, untrusted=True)
    assert_same(got, arrays)
    assert all(values.ctypes.data % 64 == 0 for values in got.values())


def test_errors_are_those_of_reading_it_here(weights: Path, options: BiLMOptions) -> None:
    rewrite_as(weights, lambda file, values: file.create_dataset(W_0, data=values[:5]))
    assert refused(weights, options, untrusted=True) == refused(weights, options, "(5, 32)")


# Reads a file in a program that is small itself, and prints the largest memory of its processes in KiB.
PEAK = """
import json, resource, sys, types
package = types.ModuleType("spacy_elmo")
package.__path__ = [sys.argv[1]]
sys.modules["spacy_elmo"] = package
from spacy_elmo.formats import BiLMOptions, read_weights
try:
    read_weights(sys.argv[2], BiLMOptions.from_dict(json.loads(sys.argv[3])), untrusted=True)
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not limit memory")
@pytest.mark.parametrize("number", [0, 1, 8])
def test_a_list_of_free_blocks_without_end(weights: Path, options: BiLMOptions, number: int) -> None:
    """HDF5 takes 3.7 GB within seconds if nothing limits it."""
    make_heap_cycle(weights, number)
    arguments = [str(Path(spacy_elmo.__file__).parent), str(weights), json.dumps(options.to_dict())]
    got = subprocess.run([sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True)
    message, peak = got.stdout.splitlines()
    assert "get it again" in message
    assert int(peak) < 2**19  # KiB
