"""The parts of `make soak`, each in a form that takes a second or some."""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.harness.soak.killed_worker import killed_worker, program
from scripts.harness.soak.measures import peak, resident, text

ROOT = Path(__file__).parents[4]


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        "[kills.kill(name, 2) for name in ('download', 'to_disk', 'layer cache', 'prepared text')]",
        *("many_docs.many_docs(200)", "threads.shared_pipeline(1.0, 3)", "cycles.load_and_drop(10)"),
    ],
)
def test_part(call: str) -> None:
    """In a process of its own: what is killed is forked from it, and memory is measured."""
    module = call.lstrip("[").partition(".")[0]
    code = f"import torch; torch.set_num_threads(1); from scripts.harness.soak import {module}; print({call})"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()


def test_memory() -> None:
    before = resident()
    with mmap.mmap(-1, 50_000_000) as held:  # new pages, where an allocator may give those of the tests before
        held.write(b"x" * len(held))
        assert resident() - before > 40
        assert peak() >= resident() - 1


def test_texts_have_all_planes() -> None:
    import random

    characters = {ord(one) for _ in range(2000) for one in text(random.Random(_))}
    assert {code >> 16 for code in characters} == set(range(17))
    assert not [code for code in characters if 0xD800 <= code <= 0xDFFF]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes as Linux tells them")
@pytest.mark.parametrize(("words", "texts"), [(1, "100_000"), (200, "5_000")])
def test_the_program_of_the_page_ends_if_a_worker_is_killed(words: int, texts: str) -> None:
    """Also if more text waits for the workers than a pipe holds, which keeps other programs from ending."""
    source = program().replace("Bank", "Bank " * words).replace("100_000", texts)
    told = killed_worker(source, 60.0)
    found = re.fullmatch(r"ended ([\d.]+) s after a worker was killed, with exit code 1: a worker was killed", told)
    assert found, told
    assert float(found[1]) < 30
