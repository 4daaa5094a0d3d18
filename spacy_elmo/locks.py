"""Locks that a forked process can take, whatever the other threads of its parent held at the time of the fork.

A forked process (`nlp.pipe` with n_process) has a copy of each lock as it was, but only the thread that forked. Nobody
would release what another thread held.
"""

import os
import threading
from weakref import WeakSet


def fork_lock() -> threading.Lock:
    """Return a lock that no thread holds at a fork: the process that forks waits for it, so its data are whole.

    It is for short changes in many steps. Take no other lock of the package while you hold it. Call this only at module
    level, because the lock stays registered with `os` for the life of the process.
    """
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


class Lock:
    """A lock that is made anew in a forked process, so no fork ever waits for it. A thread can take it again.

    The forked process sees what the lock guards in the middle of a change. So change it by one assignment at the end,
    or by steps after which the change can be begun again. A copy or a pickle is a new lock.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _LOCKS.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> "tuple[type[Lock], tuple[()]]":
        return Lock, ()


_LOCKS: WeakSet[Lock] = WeakSet()


def _make_anew() -> None:
    for lock in _LOCKS:
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_make_anew)
