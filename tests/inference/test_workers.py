"""Parts that run side by side."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import torch

from spacy_elmo.inference.workers import run_all


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_all_parts_run_with_one_of_torchs_threads_each(n_threads: int) -> None:
    before, found = torch.get_num_threads(), []
    run_all([lambda k=k: found.append((k, torch.get_num_threads())) for k in range(7)], n_threads)  # type: ignore[misc]
    assert sorted(k for k, _ in found) == list(range(7))
    assert {n for _, n in found} == ({1} if n_threads > 1 else {before})
    assert torch.get_num_threads() == before


def test_the_first_error_is_raised() -> None:
    done = threading.Event()

    def fail() -> None:
        raise ValueError("part")

    with pytest.raises(ValueError, match="part"):
        run_all([fail, done.set], 2)
    assert done.wait(10)


PROGRAM = """
import threading, time
from spacy_elmo.inference.workers import run_all

def late():
    threading.main_thread().join()
    time.sleep(0.2)
    run_all([lambda: print("first"), lambda: print("second")], 2)

threading.Thread(target=late).start()
"""


def test_a_thread_that_outlives_the_main_one() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert result.stdout.split() == ["first", "second"]
    assert result.stderr == ""
