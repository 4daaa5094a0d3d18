"""Locks at a fork: a child has what other threads of its parent held, but not these threads."""

import copy
import multiprocessing
import pickle
import random
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from pipelines import pipeline, shared

import spacy_elmo
from spacy_elmo.corpus import columns
from spacy_elmo.inference import cache, words, workers
from spacy_elmo.locks import Lock
from spacy_elmo.tasks import shared as tasks

FORKS = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs processes that fork")


def exit_code(child: Callable[[], object]) -> int | None:
    """What a forked process ends with: 0 if `child` returned something true; None: it hangs."""
    process = multiprocessing.get_context("fork").Process(target=lambda: sys.exit(not child()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        process.start()
    process.join(30)
    code = process.exitcode
    process.kill()
    return code


def taken(lock: Any) -> bool:
    """Whether another thread than this one gets the lock at once, as a thread of the child would."""
    got = threading.Event()

    def take() -> None:
        with lock:
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(20)


def held_while(lock: Any, seconds: float) -> threading.Thread:
    held = threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            time.sleep(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    return thread


@FORKS
@pytest.mark.parametrize("lock", [workers._LOCK, words._LOCK, cache._LOCK, cache._FILE_LOCK], ids=range(4))
def test_a_fork_waits_for_a_short_lock(lock: threading.Lock) -> None:
    thread = held_while(lock, 0.3)
    assert exit_code(lambda: taken(lock)) == 0
    thread.join()


@FORKS
def test_a_fork_does_not_wait_for_a_lock_of_an_object() -> None:
    lock = Lock()
    locks = [lock, copy.deepcopy(lock), pickle.loads(pickle.dumps(lock)), columns._LOCK]
    locks += [tasks._REGISTERING]
    threads = [held_while(each, 3) for each in locks]
    begin = time.monotonic()
    assert exit_code(lambda: all(map(taken, locks))) == 0
    assert time.monotonic() - begin < 2.5
    for thread in threads:
        thread.join()


def test_a_thread_takes_a_lock_again_and_others_wait() -> None:
    lock, order = Lock(), []

    def second() -> None:
        with lock:
            order.append(2)

    with lock, lock:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.1)
        order.append(1)
    thread.join()
    assert order == [1, 2]


def test_no_other_locks_are_made() -> None:
    files = Path(spacy_elmo.__file__).parent.rglob("*.py")
    made = re.compile(r"threading\.(R?Lock|Condition|Semaphore)\(")
    assert {path.name for path in files if made.search(path.read_text(encoding="utf8"))} == {"locks.py"}


@FORKS
@pytest.mark.slow
@pytest.mark.parametrize("action", ["first use", "save", "train"])
def test_a_fork_at_any_line_of_another_thread(action: str) -> None:
    """The child predicts what it would have without that thread, which is stopped at a line chosen at random."""
    texts = ["I like ham", "x y  z"]
    expected = [doc._.elmo for doc in shared().pipe(texts)]
    lines = random.Random(0)
    total = stopped_at(action, None, lambda nlp: True)
    assert total > 100
    for line in sorted(lines.sample(range(total), 6)):

        def child(nlp: Any) -> bool:
            got = [doc._.elmo for doc in nlp.pipe(texts)]
            return action == "train" or all(map(np.array_equal, got, expected))

        assert stopped_at(action, line, child) == 0, f"{action}, line {line} of {total}"


def stopped_at(action: str, line: int | None, child: Callable[[Any], object]) -> int | None:
    """Fork while another thread is at this line of the package, of those that it runs; None: count them."""
    nlp = pipeline(frozen=action != "train")
    pipe: Any = nlp.get_pipe("elmo")
    if action != "first use":
        nlp("a b")
    if action == "train":
        pipe.model.shims[0].unfreeze()
    seen, there, go = 0, threading.Event(), threading.Event()
    package = str(Path(spacy_elmo.__file__).parent)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.startswith(package):
            return None
        if event == "line":
            if seen == line:
                there.set()
                go.wait(60)
            seen += 1
        return trace

    def other() -> None:
        sys.settrace(trace)
        try:
            if action == "train":
                _, backprop = pipe.model.begin_update([nlp.make_doc("a b")])
                backprop([np.ones((3, 2, 32), "f")])
                pipe.model.finish_update(lambda key, weights, gradient, lr_scale: (weights - gradient, gradient))
            elif action == "save":
                pipe.to_bytes()
            else:
                nlp("a b")
        finally:
            sys.settrace(None)
            there.set()

    thread = threading.Thread(target=other)
    thread.start()
    there.wait(60)
    code = seen if line is None else exit_code(lambda: child(nlp))
    go.set()
    thread.join()
    return seen if line is None else code
