"""A lock, so that only one process at a time writes in a folder."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import ElmoError, Errors
from ..atomic import writing
from .leftovers import remove_leftovers

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # far after the process number, since locked bytes can't be read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# errors of file systems without locks. A run there is allowed
_NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


@contextmanager
def folder_lock(folder: Path, error: type[ElmoError]) -> Iterator[None]:
    """Hold the lock of a folder during a `with` block, after deleting the incomplete files of killed processes.

    The operating system releases the lock when the process ends, however it ends. The file .lock stays. Of the
    processes of one run only the first may hold it. On a file system without locks nothing is locked or deleted.

    folder: that is written, for example that of a run. It must exist.
    error: class of the exception.

    Raises `error`, which names the process, if another one holds the lock.
    """
    path = folder / ".lock"
    with writing(path, error):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if _acquire(descriptor, path, error):
            remove_leftovers(folder, error)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, error: type[ElmoError]) -> bool:
    """Lock the file and write the process number. Returns whether the file system has locks."""
    try:
        _lock(descriptor)
    except (BlockingIOError, PermissionError) as reason:
        number = os.read(descriptor, 32).decode("ascii", "replace").strip()
        holder = f"the process {number}" if number.isdecimal() else "a process that has just begun"
        raise error(Errors.RUN_LOCKED.format(folder=path.parent, holder=holder)) from reason
    except OSError as reason:
        if reason.errno not in _NO_LOCKS:
            raise error(Errors.FILE_UNWRITABLE.format(path=path, reason=reason)) from reason
        return False
    with writing(path, error):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    return True
