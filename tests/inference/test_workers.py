"""Parts that run side by side."""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest
import torch

from spacy_elmo.inference import workers
from spacy_elmo.inference.workers import run_all, run_apart, run_both


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_all_parts_run_with_one_of_torchs_threads_each(n_threads: int) -> None:
    before, found = torch.get_num_threads(), []
    run_all([lambda k=k: found.append((k, torch.get_num_threads())) for k in range(7)], n_threads)  # type: ignore[misc]
    assert sorted(k for k, _ in found) == list(range(7))
    assert {n for _, n in found} == ({1} if n_threads > 1 else {before})
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_part_apart_and_two_at_once(n_threads: int) -> None:
    torch.set_num_threads(n_threads)
    barrier = threading.Barrier(n_threads, timeout=60)

    def work() -> list[int]:
        found: list[int] = []

        def note() -> None:
            barrier.wait()  # with two threads each waits for the other
            found.append(torch.get_num_threads())

        run_both(note, note)
        return found

    assert run_apart(work) == [1, 1]
    variable = ContextVar("variable", default="")  # Thinc keeps its ops in one
    variable.set("of the caller")
    assert run_apart(variable.get) == "of the caller"
    assert torch.get_num_threads() == n_threads
    with pytest.raises(ValueError, match="part"):
        run_apart(lambda: int("part"))


def test_many_threads_work_apart() -> None:
    """More than there are threads of the package: none waits for a helper that waits for it."""

    def work(k: int) -> int:
        found: list[int] = []
        run_apart(lambda: run_both(lambda: found.append(k), lambda: found.append(k)))
        return sum(found)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(64))) == [2 * k for k in range(64)]


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
from spacy_elmo.inference.workers import run_all, run_apart, run_both

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
import os, torch
from spacy_elmo import bilms
from spacy_elmo.inference import Engine
from spacy_elmo.modules import load_bilm

torch.set_num_threads(1)
bilm = load_bilm(*bilms.paths("en_core"))
engines = [Engine(bilm, cached_words=n) for n in (0, 2000)]
torch.set_num_threads(2)
before = len(os.listdir("/proc/self/task"))
for engine in engines:
    for sentences in ([["a", "bank"]], [[f"w{k} {n}" for k in range(20)] for n in range(60)]):
        engine.run(sentences)
        print(len(os.listdir("/proc/self/task")) - before)
torch.ones(10**6) + 1
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux tells them")
def test_torch_wakes_no_threads_of_its_own() -> None:
    """They would spin for some milliseconds on the cores that the engine's threads need."""
    result = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, timeout=120)
    assert result.stdout.split() == ["2", "2", "2", "2", "3"], result.stderr
