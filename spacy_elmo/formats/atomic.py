"""Atomic writing: a new file is complete at its path, or the earlier file stays."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py

from ..errors import ElmoError, Errors

# HDF5's default cache for chunks. h5py's default chunks are smaller and make files 12 % larger (measured).
_CHUNK_BYTES = 2**20
# Smaller arrays would grow if compressed, since a chunk needs an index.
_MIN_COMPRESSED_BYTES = 2**12
# A file's name has 255 bytes at most on all common file systems. A temporary file adds 38, and one of it 38 more.
_NAME_BYTES = 150


@contextmanager
def replacing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[Path]:
    """Yield a temporary path; move the file from there to `path` if the block succeeds.

    If the block raises, the temporary file is deleted and an earlier file at `path` stays unchanged.

    path: the file to write. If it is a symbolic link, the link's target is replaced.
    error: class of the exception.

    Yields a path in the same folder. The block must create a file there.
    Raises `error` if the folder is missing, if `path` is no regular file, or the file that standard output goes to, or
        if the move fails.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise error(Errors.FOLDER_MISSING.format(path=target, folder=target.parent))
    if target.is_dir():
        raise error(Errors.FILE_UNWRITABLE.format(path=target, reason="it is a folder"))
    if target.is_symlink():  # of others, realpath returns the target
        raise error(Errors.FILE_UNWRITABLE.format(path=target, reason="its symbolic links form a loop"))
    if target.exists() and not target.is_file():  # a pipe, or a device such as /dev/null
        raise error(Errors.FILE_UNWRITABLE.format(path=target, reason="it is no regular file"))
    if is_output(target):  # as /dev/stdout is, with > file
        raise error(Errors.FILE_OUTPUT.format(path=target))
    temporary = _temporary(target)
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


def _temporary(target: Path) -> Path:
    """Return a new path beside a file, whose name tells what it is to become if there is room for that."""
    name = f".{uuid.uuid4().hex}.tmp"
    return target.parent / (f".{target.name}{name}" if len(os.fsencode(target.name)) <= _NAME_BYTES else name)


@contextmanager
def writing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[None]:
    """Turn an OSError or RuntimeError inside the block into `error`, with `path` in the message."""
    try:
        yield
    except (OSError, RuntimeError) as exc:  # h5py raises RuntimeError when it closes a file on a full disk
        raise error(Errors.FILE_UNWRITABLE.format(path=path, reason=exc)) from exc


def write_hdf5(
    path: str | os.PathLike[str], arrays: Iterable[tuple[str, Any]], error: type[ElmoError], *, compress: bool = False
) -> None:
    """Write datasets into a new HDF5 file, atomically and synced to the disk.

    path: the file to write.
    arrays: (name, numpy array) of each dataset, in the order of the file.
    error: class of the exception.
    compress: whether to use HDF5's own filters shuffle and gzip, which every HDF5 library undoes while it reads.

    Raises `error` if the file can't be written.
    """
    # The file is built in memory, because HDF5 can crash the process if it writes to a full disk itself.
    with h5py.File(str(path), "w", driver="core", backing_store=False) as file:
        for name, array in arrays:
            file.create_dataset(name, data=array, **(_compression(array) if compress else {}))
        file.flush()
        image = file.id.get_file_image()
    with replacing(path, error) as temporary, writing(path, error), open(temporary, "wb") as raw:
        raw.write(image)
        raw.flush()
        os.fsync(raw.fileno())


def _compression(array: Any) -> dict[str, Any]:
    """h5py's arguments to compress an array in chunks of complete rows. array: *Shape:* (rows, ...)."""
    if array.nbytes < _MIN_COMPRESSED_BYTES:
        return {}
    rows = max(1, min(len(array), _CHUNK_BYTES * len(array) // array.nbytes))
    return {"chunks": (rows, *array.shape[1:]), "shuffle": True, "compression": "gzip"}
