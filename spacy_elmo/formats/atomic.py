"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from ..errors import ElmoError, Errors

_CHUNK_BYTES = 2**20  # what HDF5 caches; h5py's own choice is smaller, and makes files 12 % larger (measured)
_LEAST_BYTES = 2**12  # what is smaller grows, since a chunk needs an index


@contextmanager
def replacing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[Path]:
    """Give a temporary path in the folder of `path`; move the file there to `path` when the block succeeds.

    When the block raises, the temporary file is deleted and an earlier file at `path` stays as it was.

    Raises `error` where the folder is missing, `path` is a folder, or the move fails.
    """
    target = Path(os.path.realpath(path))  # a link stays one, and what it names is replaced
    if not target.parent.is_dir():
        raise error(Errors.FOLDER_MISSING.format(path=target, folder=target.parent))
    if target.is_dir():
        raise error(Errors.FILE_UNWRITABLE.format(path=target, reason="it is a folder"))
    temporary = target.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        yield temporary
        with writing(target, error):
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: str | os.PathLike[str], error: type[ElmoError]) -> Iterator[None]:
    """Turn what the file system refuses inside the block into `error`, naming `path`."""
    try:
        yield
    except (OSError, RuntimeError) as exc:  # h5py raises RuntimeError where it closes a file on a full disk
        raise error(Errors.FILE_UNWRITABLE.format(path=path, reason=exc)) from exc


def write_hdf5(
    path: str | os.PathLike[str], arrays: Iterable[tuple[str, Any]], error: type[ElmoError], *, compress: bool = False
) -> None:
    """Write datasets as an HDF5 file, whole or not at all, and safe on the disk when this returns.

    compress: by HDF5's own filters shuffle and gzip, which every HDF5 library undoes while it reads.
    The file is made in memory: HDF5 itself can crash the process where the disk is full. Raises `error`.
    """
    with h5py.File(str(path), "w", driver="core", backing_store=False) as file:
        for name, array in arrays:
            file.create_dataset(name, data=array, **(_compressed(array) if compress else {}))
        file.flush()
        image = file.id.get_file_image()
    with replacing(path, error) as temporary, writing(path, error), open(temporary, "wb") as written:
        written.write(image)
        written.flush()
        os.fsync(written.fileno())


def _compressed(array: Any) -> dict[str, Any]:
    """How to store an array, (rows, ...), in chunks of whole rows."""
    if array.nbytes < _LEAST_BYTES:
        return {}
    rows = max(1, min(len(array), _CHUNK_BYTES * len(array) // array.nbytes))
    return {"chunks": (rows, *array.shape[1:]), "shuffle": True, "compression": "gzip"}
