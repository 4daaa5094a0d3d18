"""Parts that run side by side."""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch

from spacy_elmo.inference import cache, words, workers
from spacy_elmo.inference.workers import run_all


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_all_parts_run_with_one_of_torchs_threads_each(n_threads: int) -> None:
    before, found = torch.get_num_threads(), []
    run_all([lambda k=k: found.append((k, torch.get_num_threads())) for k in range(7)], n_threads)  # type: ignore[misc]
    assert sorted(k for k, _ in found) == list(range(7))
    assert {n for _, n in found} == ({1} if n_threads > 1 else {before})
    assert torch.get_num_threads() == before


def test_a_part_alone_too() -> None:
    found: list[int] = []
    run_all([lambda: found.append(torch.get_num_threads())], 2)
    assert found == [1]


def test_the_first_error_is_raised() -> None:
    done = threading.Event()

    def fail() -> None:
        raise ValueError("part")

    with pytest.raises(ValueError, match="part"):
        run_all([fail, done.set], 2)
    assert done.wait(10)


def test_threads_end_if_not_all_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python waits for all threads at its end."""
    start, started = threading.Thread.start, []

    def limited(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(workers, "_POOLS", {})
    monkeypatch.setattr(threading.Thread, "start", limited)
    run_all([int, int], 2)
    gc.collect()  # the pool, whose threads end when it is gone
    started[0].join(10)
    assert not started[0].is_alive()


PROGRAM = """
import threading, time
from spacy_elmo.inference.workers import run_all

def late():
    threading.main_thread().join()
    time.sleep(0.2)
    run_all([lambda: print("first"), lambda: print("second")], 2)

threading.Thread(target=late).start()
"""


@pytest.mark.slow
def test_a_thread_that_outlives_the_main_one() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert result.stdout.split() == ["first", "second"]
    assert result.stderr == ""


# torch starts threads of its own at the first operation on many values
COUNTED = """
import os, sys, torch
from spacy_elmo import bilms
from spacy_elmo.inference import Engine
from spacy_elmo.modules import load_bilm

torch.set_num_threads(1)
engine = Engine.of(load_bilm(*bilms.paths("en_core")), cached_words=int(sys.argv[1]))
torch.set_num_threads(2)
before = len(os.listdir("/proc/self/task"))
for sentences in ([["a", "bank"]], [[f"w{k} {n}" for k in range(20)] for n in range(60)]):
    engine.run(sentences)
    print(len(os.listdir("/proc/self/task")) - before)
torch.ones(10**6) + 1
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux tells them")
@pytest.mark.parametrize("cached_words", [0, 2000])
def test_torch_wakes_no_threads_of_its_own(cached_words: int) -> None:
    """They would spin for some milliseconds on the cores that the engine's threads need."""
    result = subprocess.run(
        [sys.executable, "-c", COUNTED, str(cached_words)], capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == ["2", "2", "3"], result.stderr


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork")
@pytest.mark.parametrize("lock", [workers._LOCK, words._LOCK, cache._LOCK, cache._FILE_LOCK], ids=range(4))
def test_a_fork_while_a_thread_has_a_lock(lock: threading.Lock) -> None:
    """As nlp.pipe with n_process in a server whose threads embed: in the child no thread is there to release it."""
    held = threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    child = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(not lock.acquire(timeout=20)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        child.start()
    child.join(30)
    thread.join()
    assert child.exitcode == 0
