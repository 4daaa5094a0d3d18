"""Atomic writing: a new file is complete at its path, or the earlier file stays."""

import errno
import hashlib
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from ..errors import ElmoError
from .paths import expanded, refuse_name

# A file's name has 255 bytes at most on all common file systems. A temporary file adds 38, and one of it 38 more.
_NAME_BYTES = 150
UNFINISHED = ".unfinished"  # name of a marker file that stands in a folder while its files are replaced

# by real paths: what this process alone writes, and temporary files and folders of it
_held: set[Path] = set()
_temporary: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary path; move the file from there to `path`, or the target of this link, if the block succeeds.

    Raises `error` as `file_to_write` and `lock` do, or if the file can't be written.
    """
    target = file_to_write(path, error)
    with _unfinished(target, error) as temporary:
        yield temporary
        with writing(target, error):
            os.replace(temporary, target)


@contextmanager
def _unfinished(target: Path, error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary path for a target whose lock is held. What is there at the end is deleted."""
    with nullcontext() if target in _held else lock(target, error):
        temporary = _beside(target, f"{uuid.uuid4().hex}.tmp")
        _temporary.add(temporary)
        try:
            yield temporary
        finally:
            _temporary.discard(temporary)
            with suppress(OSError):  # a file system that can't be written refuses this even if there is no such file
                _delete(temporary)


def file_to_write(path: str | os.PathLike[str], error: type[ElmoError]) -> Path:
    """Return where a file is to be written: `path`, or the target of this link.

    Raises `error` if its folder is missing, or if that is no regular file, or if no file can have this path.
    """
    refuse_name(path, error)
    target = real(path)
    if not target.parent.is_dir():
        raise error(f"{target}: can't be written, because the folder {target.parent} does not exist.")
    if target.exists() and not target.is_file():  # a folder, a pipe, or a device such as /dev/null
        reason = "it is a folder" if target.is_dir() else "it is no regular file"
        raise error(f"{target}: can't be written ({reason}).")
    return target


def real(path: str | os.PathLike[str]) -> Path:
    """Return a path of the user without links. (`Path.resolve` fails if links loop.)"""
    return Path(os.path.realpath(expanded(path)))


def _beside(target: Path, end: str) -> Path:
    """Return a hidden path with the name of a target: beside it, or inside of a folder where that is not possible."""
    # files can't be moved to another file system
    if target.is_dir() and (os.path.ismount(target) or not os.access(target.parent, os.W_OK)):
        return target / f".{end}"
    name = target.name
    if len(os.fsencode(name)) > _NAME_BYTES:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
    return target.parent / f".{name}.{end}"


@contextmanager
def writing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[None]:
    """Turn an OSError or RuntimeError inside the block into `error`, with `path` in the message."""
    try:
        yield
    except (OSError, RuntimeError) as exc:  # h5py raises RuntimeError when it closes a file on a full disk
        raise error(f"{path}: can't be written ({exc}).") from exc


def is_unfinished(folder: Path) -> bool:
    """Whether a folder may mix old and new files, because a process was killed while it replaced them."""
    return (folder / UNFINISHED).exists()


@contextmanager
def replacing_folder(path: str | os.PathLike[str], names: Iterable[str], error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary folder; move its files to the folder `path` if the block succeeds, else nothing changes.

    A new folder appears at once. In an old one files are replaced one by one, and those of `names` that are not written
    are deleted: if the process is killed meanwhile, is_unfinished(path) is true until it is replaced again.
    """
    folder = real(path)
    with _unfinished(folder, error) as temporary:
        with writing(folder, error):
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


def _replace_files(source: Path, folder: Path, names: Iterable[str]) -> None:
    (folder / UNFINISHED).touch()
    for name in names:  # deleted first, so that no file of the earlier model is read with files of this one
        if not (source / name).exists():
            (folder / name).unlink(missing_ok=True)
    for path in source.iterdir():
        if path.is_dir() and (folder / path.name).is_dir():
            _replace_files(path, folder / path.name, ())
        else:
            os.replace(path, folder / path.name)
    (folder / UNFINISHED).unlink()


_TEMPORARY = re.compile(r"\.((?P<name>.+)\.)?[0-9a-f]{32}\.tmp")  # what `_beside` names


def remove_leftovers(folder: Path, error: type[ElmoError]) -> None:
    """Delete temporary files in a folder that this process holds, and in those directly inside it.

    A file that another process is writing there stays.
    """
    with writing(folder, error):
        for path in [*folder.glob(".*"), *folder.glob("*/.*")]:
            if left := _TEMPORARY.fullmatch(path.name):
                if left["name"] and (path.parent / f".{left['name']}.lock").exists():
                    with suppress(error), _locked(path.parent / left["name"], error):
                        pass
                else:
                    _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # far after the process number, since locked bytes can't be read
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


# of file systems without locks
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK)


@contextmanager
def lock(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[None]:
    """Hold the lock of a file or folder to be written, which may be missing, during a `with` block.

    The lock is on a hidden file beside it, which is deleted at the end. A process that is killed frees it. First, what
    killed processes left of the file or folder is deleted. Nothing is locked or deleted on a file system without locks.
    Raises `error`, with the process that holds the lock.
    """
    target = real(path)
    if target in _held:
        raise error(f"{target}: this process writes there already. Expected another output: change one of the two.")
    if (_held | _temporary).isdisjoint((target, *target.parents)):
        with _locked(target, error):
            yield
    else:  # this process holds the folder that it is in
        yield


@contextmanager
def _locked(target: Path, error: type[ElmoError]) -> Iterator[None]:
    file = _beside(target, "lock")
    missing = [above for above in file.parents if not above.exists()]
    with ExitStack() as ending:
        for above in reversed(missing):
            ending.callback(_try, above.rmdir)  # not empty after a success
        with writing(target, error):
            file.parent.mkdir(parents=True, exist_ok=True)
            while not _lock_file(file, target, ending, error):
                pass
        _held.add(target)
        ending.callback(_held.discard, target)
        yield


def _try(delete: Callable[[], None]) -> None:
    with suppress(OSError):
        delete()


def _lock_file(file: Path, target: Path, ending: ExitStack, error: type[ElmoError]) -> bool:
    """Open and lock a file until the end of `ending`. False: it was deleted meanwhile. Raises `error` and OSError."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    with ExitStack() as opened:
        opened.callback(os.close, descriptor)
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError) as reason:
            number = os.read(descriptor, 32).decode("ascii", "replace").strip()
            holder = f"the process {number}" if number.isdecimal() else "a process that has just begun"
            raise error(
                f"{target}: another run writes there, {holder}. Wait until it ends, stop it, or give another output."
            ) from reason
        except OSError as reason:
            if reason.errno not in _NO_LOCKS:
                raise
        else:
            # the process that held it before may have deleted it
            if not (file.exists() and os.path.samestat(os.fstat(descriptor), file.stat())):
                return False
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            _remove_leftovers_of(target, error)
        if os.name == "nt":  # where no open file can be deleted
            ending.callback(_try, file.unlink)
        ending.push(opened.pop_all())
        if os.name != "nt":  # before it is closed, so that nobody else has locked it
            ending.callback(_try, file.unlink)
    return True


def _remove_leftovers_of(target: Path, error: type[ElmoError]) -> None:
    example = _beside(target, "")
    of_target = re.compile(rf"\.*{re.escape(example.name)}([0-9a-f]{{32}}\.tmp\.)*[0-9a-f]{{32}}\.tmp")
    for path in example.parent.iterdir():
        if of_target.fullmatch(path.name):
            _delete(path)
    if target.is_dir():
        remove_leftovers(target, error)
