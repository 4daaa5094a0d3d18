"""The lock that keeps two runs out of one folder."""

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
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # far behind the number: what is locked can't be read there
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# of file systems that know no locks: training there is better than none
_NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, which exists, while the block runs; delete first what killed runs left there.

    The system gives it free when the process ends, however it ends; the file .lock stays. Of several processes of
    one run the first alone may take it. On a file system without locks nothing is locked, nor deleted.
    Raises CheckpointError where another process holds it, and names that process.
    """
    path = folder / ".lock"
    with writing(path, CheckpointError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if _take(descriptor, path):
            remove_leftovers(folder)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> bool:
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
