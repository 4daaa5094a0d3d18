"""A lock for processes that fork."""

from __future__ import annotations

import os
import threading


def fork_lock() -> threading.Lock:
    """Return a lock that is free in a forked process, even if another thread held it at the time of the fork.

    Call it only at module level, because the lock stays registered with `os` for the life of the process.
    """
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
