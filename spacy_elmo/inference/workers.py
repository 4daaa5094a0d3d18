"""Threads that run parts of a batch side by side.

Each part's products run on one core. Two threads on one product wait for each other at every step, and collapse when
another process needs a core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

_LOCK = threading.Lock()
_POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process (a fork has no threads) and size


def run_all(parts: Sequence[Callable[[], None]], n_threads: int) -> None:
    """Run all parts, at most n_threads at a time. The first error is raised.

    Each part has one of torch's threads. Where n_threads is 1, or the interpreter is ending, the caller runs them, with
    all of its own.
    """
    if n_threads == 1:
        for part in parts:
            part()
        return
    futures = []
    for part in parts:
        try:
            futures.append(_pool(n_threads).submit(part))
        except RuntimeError:  # the interpreter is ending, and starts no threads any more
            part()
    for future in futures:
        future.result()


def _pool(n_threads: int) -> ThreadPoolExecutor:
    key = os.getpid(), n_threads
    with _LOCK:
        if key not in _POOLS:
            started = threading.Barrier(n_threads + 1)

            def start() -> None:
                torch.get_num_threads()  # a thread's first question sets it to the program's number
                torch.set_num_threads(1)
                started.wait()

            before = torch.get_num_threads()
            pool = ThreadPoolExecutor(n_threads, "elmo")
            try:
                waiting = [pool.submit(start) for _ in range(n_threads)]
            except BaseException:
                started.abort()  # those that were started must not wait for ever
                raise
            started.wait()
            for future in waiting:
                future.result()
            torch.set_num_threads(before)  # what later threads of the program begin with
            _POOLS[key] = pool
        return _POOLS[key]
