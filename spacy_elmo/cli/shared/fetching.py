"""A file from the network: resumed where it was cut, and checked before it is in place."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import requests

from ...errors import DownloadError, Errors
from .checksums import sha256_of
from .transfer import NETWORK_ERRORS, transfer

PAUSES = (1.0, 3.0)  # seconds before the second and the third attempt


def part_of(target: Path, sha256: str) -> Path:
    """Where the bytes of a file are gathered: beside it, under a name that no file with another hash shares."""
    return target.with_name(f"{target.name}.{sha256[:16]}.part")


def fetch(url: str, target: Path, sha256: str) -> None:
    """Download `url` to `target`, which is put in place only when its size and its SHA-256 are right.

    The bytes go to `part_of` the target, which stays when the connection is cut and is continued by the next call.
    Of two calls at once for one target the second is refused: the part is locked while it is used. (Where the
    system has no such locks, the hash is what guards the result, and Windows replaces no file that is open.)

    Raises DownloadError; then an earlier file at `target` is as it was.
    """
    part = part_of(target, sha256)
    try:
        with _opened(part) as file:
            # a run that was stopped before its last check has left all the bytes
            if sha256_of(file) != sha256:
                _gather(url, file, target, part)
                file.flush()
                os.fsync(file.fileno())
                got = sha256_of(file)
                if got != sha256:
                    file.truncate(0)
                    raise DownloadError(Errors.DOWNLOAD_HASH.format(url=url, got=got, expected=sha256, path=target))
            if os.name == "nt":  # which replaces no open file; elsewhere the lock is to last until then
                file.close()
            os.replace(part, target)
    except OSError as error:
        raise DownloadError(Errors.DOWNLOAD_WRITE.format(path=target, reason=error, part=part)) from error


def _gather(url: str, file: BinaryIO, target: Path, part: Path) -> None:
    with requests.Session() as session:
        for pause in (*PAUSES, None):
            try:
                return transfer(session, url, file, target.name)
            except NETWORK_ERRORS as error:
                if pause is None:
                    got = file.seek(0, 2)
                    message = Errors.DOWNLOAD_CUT if got else Errors.DOWNLOAD_CONNECTION
                    raise DownloadError(message.format(url=url, reason=error, got=got, part=part)) from error
                time.sleep(pause)


@contextmanager
def _opened(part: Path) -> Iterator[BinaryIO]:
    """The part, open for appending and reading, and locked; where nothing is in it at the end, it is removed."""
    with part.open("a+b") as file:
        _lock(file, part)
        try:
            yield file
        finally:
            if not file.closed and file.seek(0, 2) == 0:
                if os.name == "nt":
                    file.close()
                part.unlink(missing_ok=True)


def _lock(file: BinaryIO, part: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DownloadError(Errors.DOWNLOAD_TWICE.format(part=part)) from error
    except OSError:  # a file system without locks
        return
    # another run may have moved the part to its place between open and lock
    if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
        raise DownloadError(Errors.DOWNLOAD_TWICE.format(part=part))
