"""A lock, so that only one run at a time uses a folder."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import CheckpointError, Errors
from ...formats.atomic import writing
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
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder during a `with` block, after deleting the incomplete files of killed runs.

    The operating system releases the lock when the process ends, however it ends. The file .lock stays. Of the
    processes of one run only the first may hold it. On a file system without locks nothing is locked or deleted.

    folder: of the run. It must exist.

    Raises CheckpointError, which names the process, if another one holds the lock.
    """
    path = folder / ".lock"
    with writing(path, CheckpointError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if _acquire(descriptor, path):
            remove_leftovers(folder)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path) -> bool:
    """Lock the file and write the process number. Returns whether the file system has locks."""
    try:
        _lock(descriptor)
    except (BlockingIOError, PermissionError) as error:
        number = os.read(descriptor, 32).decode("ascii", "replace").strip()
        holder = f"the process {number}" if number.isdecimal() else "a process that has just begun"
        raise CheckpointError(Errors.RUN_LOCKED.format(folder=path.parent, holder=holder)) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise CheckpointError(Errors.FILE_UNWRITABLE.format(path=path, reason=error)) from error
        return False
    with writing(path, CheckpointError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    return True
