"""Threads that run parts of a batch at the same time.

Each part runs its matrix multiplications on one core. Two threads that share a matrix multiplication wait for each
other at every step of the LSTM, and become much slower if another process needs a core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import torch

from ..locks import fork_lock

if hasattr(os, "register_at_fork"):
    # OpenMP's threads do not survive a fork: a child process (nlp.pipe with n_process) would wait for them for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

_LOCK = fork_lock()
_POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process id (a forked process has no threads) and size


def run_all(parts: Sequence[Callable[[], None]], n_threads: int) -> None:
    """Run all parts, at most n_threads at a time. If parts raise errors, the first one is raised.

    Each part runs with one torch thread. If n_threads is 1, or the interpreter is shutting down, the caller's thread
    runs the parts, with all of its torch threads.
    """
    if n_threads == 1:
        for part in parts:
            part()
        return
    futures = []
    for part in parts:
        try:
            futures.append(_pool(n_threads).submit(part))
        except RuntimeError:  # the interpreter is shutting down, and starts no new threads
            part()
    wait(futures)
    for future in futures:
        future.result()


def _pool(n_threads: int) -> ThreadPoolExecutor:
    key = os.getpid(), n_threads
    with _LOCK:
        if key not in _POOLS:
            started = threading.Barrier(n_threads + 1)

            def start() -> None:
                torch.get_num_threads()  # the first call in a thread resets the number to the program's
                torch.set_num_threads(1)
                started.wait()

            before = torch.get_num_threads()
            pool = ThreadPoolExecutor(n_threads, "elmo")
            try:
                waiting = [pool.submit(start) for _ in range(n_threads)]
                started.wait()
                for future in waiting:
                    future.result()
            except BaseException:
                started.abort()  # the threads that have started must not wait for ever
                raise
            finally:
                torch.set_num_threads(before)  # later threads of the program inherit it
            _POOLS[key] = pool
        return _POOLS[key]
