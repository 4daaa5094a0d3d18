"""The long tests, each in a form that takes seconds: what an input does is told apart, and loops agree with torch."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import spacy

from scripts.harness import fuzz, sanitize, soak
from spacy_elmo import kernels
from spacy_elmo.errors import ElmoError, WeightsError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed makes the same input again; what is not changed is read."""
    (tmp_path / "samples").mkdir()
    target = fuzz.TARGETS[name](tmp_path / "samples")

    def made(folder: str, seed: int) -> dict[str, bytes]:
        (tmp_path / folder).mkdir()
        target.make(tmp_path / folder, Random(seed))
        files = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(tmp_path / folder)): path.read_bytes() for path in files}

    assert made("one", 1) == made("again", 1) != {}
    assert list(fuzz.read_inputs(target, range(1, 6), tmp_path / "input")) == [(5, "")]
    for change in ("mutated", "changed_message"):
        monkeypatch.setattr(fuzz, change, lambda data, random: data)
    read = 0
    for seed in range(20):
        made(str(seed), seed)
        with suppress(ElmoError):
            target.load(tmp_path / str(seed))
            read += 1
    assert read >= 3


def load(folder: Path) -> None:
    """What happens depends on the seed, of which the input tells."""
    kind = [Random(seed).random() for seed in range(6)].index(float((folder / "input").read_text()))
    if kind == 1:
        raise WeightsError("refused")
    if kind == 2:
        raise KeyError("not this package's")
    if kind == 3:
        faulthandler.disable()  # or the abort prints pages among pytest's lines
        os.abort()
    if kind == 4:
        while True:
            pass
    if kind == 5:
        bytearray(3 * 2**30)


def test_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "SECONDS", 1)

    def make(folder: Path, random: Random) -> None:
        (folder / "input").write_text(str(random.random()))

    found = dict(fuzz.read_inputs(fuzz.Target(make, load), range(6), tmp_path / "input"))
    kinds = {2: "KeyError", 3: "crash", 4: "hang", 5: "memory"}
    assert {seed: kind.split()[0] for seed, kind in found.items()} == kinds
    found = dict(fuzz.read_inputs(fuzz.Target(make, load, hdf5=True), range(2, 6), tmp_path / "input"))
    assert [kind.partition(" ")[2] for kind in found.values() if "KeyError" not in kind] == ["in HDF5"] * 3


def test_what_the_sanitizers_run_is_there() -> None:
    paths = [*sanitize.TESTS, *(f"tests/kernels/{name}" for name in sanitize.SKIPPED)]
    assert [path for path in paths if not (sanitize.ROOT / path).exists()] == []
    assert sanitize.TILES.is_file()
    assert sanitize.environment(sanitize.ROOT)["PYTHONPATH"].startswith(str(sanitize.ROOT))


def test_each_kind_of_call(monkeypatch: pytest.MonkeyPatch, compiled: ctypes.CDLL) -> None:
    monkeypatch.setattr(kernels, "load", lambda: compiled)
    sanitize._switch()
    names = Counter(sanitize.one_call(seed) for seed in range(70))
    assert names == Counter({make.__name__: 10 for make in sanitize.CALLS})
    monkeypatch.setattr(sanitize, "CALLS", (different,))
    with pytest.raises(AssertionError, match="different"):
        sanitize.one_call(0)


def different(g: object) -> list[object]:
    """Results that are others in torch."""
    sanitize.THREAD.odd = False
    return [sanitize.torch.ones(3) * (2 if getattr(sanitize.THREAD, "in_torch", False) else 1)]


def test_a_stream_of_docs() -> None:
    """In a process of its own, whose memory is measured."""
    code = "from scripts.harness import soak; print(*soak.docs(0.0))"
    result = subprocess.run([sys.executable, "-c", code], cwd=soak.ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert re.match(r"200 docs, .* MB at the end", result.stdout)
    characters = {ord(one) for seed in range(2000) for one in soak.text(Random(seed))}
    assert {code >> 16 for code in characters} == set(range(17))


def test_the_program_of_the_page_ends_if_a_worker_is_killed(tmp_path: Path) -> None:
    """Also if more text waits for the workers than a pipe holds, which keeps other programs from ending."""
    page = (soak.ROOT / "docs" / "reliability.md").read_text(encoding="utf8")
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "program.py").write_text(program.replace("Bank", "Bank " * 200).replace("range(1000)", "range(5_000)"))
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.to_disk(tmp_path / "saved")
    command = [sys.executable, "program.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            children = Path(f"/proc/{process.pid}/task").glob("*/children")
            os.kill(min(int(n) for path in children for n in path.read_text().split()), 9)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 1
    assert errors.strip().endswith("a worker was killed")
