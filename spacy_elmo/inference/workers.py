"""Threads that run parts of a batch at the same time.

Each part runs its matrix multiplications on one core. Two threads that share a matrix multiplication wait for each
other at every step of the LSTM, and become much slower if another process needs a core.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

import torch
from thinc.util import get_torch_default_device

from ..locks import fork_lock

if hasattr(os, "register_at_fork"):
    # OpenMP's threads do not survive a fork: a child process (nlp.pipe with n_process) would wait for them for ever
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

Result = TypeVar("Result")


class _Thread(threading.local):
    has_helper = False  # in the threads of `run_all`


_THREAD = _Thread()
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


def run_apart(function: Callable[[], Result]) -> Result:
    """Return what a function returns, which runs on one of the threads of `run_all` if torch has several.

    It is for many small operations of torch: torch's own threads would wait for each other after each of them.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1 or get_torch_default_device().type != "cpu":  # each thread has its own GPU
        return function()
    _pool(1)  # the helper of `run_both`; only a thread that has all of torch's threads may start others
    results: list[Result] = []
    context = copy_context()  # Thinc's ops are in it
    run_all([lambda: results.append(context.run(function))], n_threads)
    return results[0]


def run_both(first: Callable[[], None], second: Callable[[], None]) -> None:
    """Run two parts: in `run_apart` at the same time, elsewhere one after the other."""
    if not _THREAD.has_helper:
        first()
        second()
        return
    future = _pool(1).submit(second)  # helpers ask for no help, so nobody waits for ever
    try:
        first()
    finally:
        wait([future])
    future.result()


def _pool(n_threads: int) -> ThreadPoolExecutor:
    key = os.getpid(), n_threads
    with _LOCK:
        if key not in _POOLS:
            started = threading.Barrier(n_threads)

            def start() -> None:
                torch.get_num_threads()  # the first call in a thread resets the number to the program's
                torch.set_num_threads(1)
                _THREAD.has_helper = n_threads > 1
                started.wait()

            before = torch.get_num_threads()
            pool = ThreadPoolExecutor(n_threads, "elmo")
            try:
                for future in [pool.submit(start) for _ in range(n_threads)]:
                    future.result()
            except BaseException:
                started.abort()  # the threads that have started must not wait for ever
                raise
            finally:
                torch.set_num_threads(before)  # later threads of the program inherit it
            _POOLS[key] = pool
        return _POOLS[key]
