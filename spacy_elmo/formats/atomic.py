"""Atomic writing: a new file is complete at its path, or the earlier file stays."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import FILE_UNWRITABLE, ElmoError
from .paths import expanded

# A file's name has 255 bytes at most on all common file systems. A temporary file adds 38, and one of it 38 more.
_NAME_BYTES = 150


@contextmanager
def replacing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary path; move the file from there to `path`, or the target of this link, if the block succeeds.

    Raises `error` if that is no regular file, or what this process prints to, or if it can't be written.
    """
    target = Path(os.path.realpath(expanded(path)))
    if not target.parent.is_dir():
        raise error(f"{target}: can't be written, because the folder {target.parent} does not exist.")
    if target.exists() and not target.is_file():  # a folder, a pipe, or a device such as /dev/null
        reason = "it is a folder" if target.is_dir() else "it is no regular file"
        raise error(FILE_UNWRITABLE.format(path=target, reason=reason))
    if is_output(target):  # as /dev/stdout is, with > file
        raise error(f"{target}: standard output or standard error goes to it. Expected the name of another file.")
    name = f".{uuid.uuid4().hex}.tmp"
    if len(os.fsencode(target.name)) <= _NAME_BYTES:
        name = f".{target.name}{name}"
    temporary = target.parent / name
    try:
        yield temporary
        with writing(target, error):
            os.replace(temporary, target)
    finally:
        with suppress(OSError):  # a file system that can't be written refuses this even if there is no such file
            temporary.unlink(missing_ok=True)


def is_output(path: Path) -> bool:
    """Whether a file is what this process prints to."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it is closed, or there is no such file
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return True
    return False


@contextmanager
def writing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[None]:
    """Turn an OSError or RuntimeError inside the block into `error`, with `path` in the message."""
    try:
        yield
    except (OSError, RuntimeError) as exc:  # h5py raises RuntimeError when it closes a file on a full disk
        raise error(FILE_UNWRITABLE.format(path=path, reason=exc)) from exc


UNFINISHED = ".unfinished"  # name of a marker file that stands in a folder while its files are replaced


def is_unfinished(folder: Path) -> bool:
    """Whether a folder may mix old and new files, because a process was killed while it replaced them."""
    return (folder / UNFINISHED).exists()


@contextmanager
def replacing_folder(path: str | os.PathLike[str], names: Iterable[str], error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary folder; move its files to the folder `path` if the block succeeds, else nothing changes.

    A new folder appears at once. In an old one files are replaced one by one, and those of `names` that are not written
    are deleted: if the process is killed meanwhile, is_unfinished(path) is true until it is replaced again.
    """
    folder = Path(os.path.realpath(expanded(path)))
    # files can't be moved to another file system
    parent = folder if os.path.ismount(folder) else folder.parent
    temporary = parent / f".{uuid.uuid4().hex}.tmp"
    missing: list[Path] = []
    try:
        with writing(folder, error):
            missing = [above for above in temporary.parents if not above.exists()]
            temporary.mkdir(parents=True)
        try:
            yield temporary
        except ElmoError as exc:  # the message is to name the folder, as the user knows only that
            exc.args = tuple(str(argument).replace(str(temporary), str(folder)) for argument in exc.args)
            raise
        with writing(folder, error):
            if folder.exists():
                _replace_files(temporary, folder, names)
            else:
                os.rename(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for above in missing:  # the inner ones first
            with suppress(OSError):  # not empty, as after a success
                above.rmdir()


def _replace_files(source: Path, folder: Path, names: Iterable[str]) -> None:
    (folder / UNFINISHED).touch()
    for name in names:  # deleted first, so that no file of the earlier model is read with files of this one
        if not (source / name).exists():
            (folder / name).unlink(missing_ok=True)
    for path in source.iterdir():
        os.replace(path, folder / path.name)
    (folder / UNFINISHED).unlink()


# names of incomplete or replaced files and folders, here and in pretraining/prepared.py
_NAME = re.compile(r"\.(.+\.)?[0-9a-f]{32}\.(tmp|old)")


def is_leftover(name: str) -> bool:
    """Whether a name is that of a temporary file or folder."""
    return _NAME.fullmatch(name) is not None


def remove_leftovers(folder: Path, error: type[ElmoError]) -> None:
    """Delete temporary files in a folder, and in those directly inside it, where no other process may write."""
    with writing(folder, error):
        for path in [*folder.glob(".*"), *folder.glob("*/.*")]:
            if not is_leftover(path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def remove_leftovers_of(path: Path, error: type[ElmoError]) -> None:
    """Delete what killed processes left of one file (see `replacing`), which no other process may be writing."""
    target = Path(os.path.realpath(expanded(path)))
    name = re.compile(rf"\.+{re.escape(target.name)}\.(.+\.)?[0-9a-f]{{32}}\.tmp")
    with writing(path, error):
        for other in target.parent.iterdir() if target.parent.is_dir() else ():
            if name.fullmatch(other.name):
                other.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # far after the process number, since locked bytes can't be read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def folder_lock(folder: Path, error: type[ElmoError]) -> Iterator[None]:
    """Hold the lock of a folder during a `with` block, after deleting the incomplete files of killed processes.

    Nothing is locked or deleted on a file system without locks. Raises `error`, with the process that holds the lock.
    """
    path = folder / ".lock"
    with writing(path, error):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            _lock(descriptor)
            with writing(path, error):
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, f"{os.getpid()}\n".encode())
            remove_leftovers(folder, error)
        except (BlockingIOError, PermissionError) as reason:
            number = os.read(descriptor, 32).decode("ascii", "replace").strip()
            holder = f"the process {number}" if number.isdecimal() else "a process that has just begun"
            raise error(
                f"{path.parent}: another run writes there, {holder}. Wait until it ends, stop it, or give another "
                "output folder."
            ) from reason
        except OSError as reason:
            if reason.errno not in (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP):  # of file systems without locks
                raise error(FILE_UNWRITABLE.format(path=path, reason=reason)) from reason
        yield
    finally:
        os.close(descriptor)
