"""Reading of float32 datasets from HDF5 files that may be damaged or hostile.

Sizes are checked before memory is allocated, so that a small file can't cause a large array. Nothing outside the file
is ever opened. In all functions, `name` is the path of a dataset inside the file, and `error` is the class of the
exception to raise; its message names the file, the dataset and the problem.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import ElmoError, Errors
from .addresses import refuse_address
from .hdf5_storage import MAX_BYTES, check_inside, check_storage

Floats = npt.NDArray[np.float32]

_STORED = {
    "float16": (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE),
    "float32": (h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F32BE),
    "float64": (h5py.h5t.IEEE_F64LE, h5py.h5t.IEEE_F64BE),
}

# The exceptions of h5py and zlib for damaged files, as tests with damaged files showed.
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, zlib.error)


@contextmanager
def open_hdf5(path: str | os.PathLike[str], expected: str, error: type[ElmoError]) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading.

    path: the file.
    expected: what the file should be, for messages.
    error: class of the exception.

    Raises `error` if `path` is missing, unreadable, not a regular file or not an HDF5 file.
    """
    refuse_address(path, error)
    path = Path(path)
    if not os.path.exists(path):  # also False if the name is too long
        raise error(Errors.FILE_MISSING.format(path=path, expected=expected))
    if not path.is_file():
        raise error(Errors.FILE_NOT_REGULAR.format(path=path, expected=expected))
    try:
        file = h5py.File(path, "r")
    except PermissionError as exc:
        raise error(Errors.FILE_UNREADABLE.format(path=path, reason=exc, expected=expected)) from exc
    except _DAMAGE as exc:
        message = Errors.HDF5_LOCKED if "unable to lock file" in str(exc) else Errors.HDF5_OPEN
        raise error(message.format(path=path, reason=exc, expected=expected)) from exc
    with file:
        yield file


def find_dataset(file: h5py.File, name: str, error: type[ElmoError]) -> h5py.Dataset | None:
    """Return the dataset `name`, or None if a part of its path is missing.

    Raises `error` if a part of the path is a soft or external link, or of the wrong kind (group or dataset).
    """
    current: h5py.Group = file
    *groups, last = name.split("/")
    for depth, part in enumerate(groups, start=1):
        child = _child(current, part, "/".join(groups[:depth]), file.filename, error)
        if child is None:
            return None
        if not isinstance(child, h5py.Group):
            raise error(_wrong_kind(file, "/".join(groups[:depth]), child, "group"))
        current = child
    dataset = _child(current, last, name, file.filename, error)
    if dataset is not None and not isinstance(dataset, h5py.Dataset):
        raise error(_wrong_kind(file, name, dataset, "dataset"))
    return dataset


def exists(file: h5py.File, name: str, error: type[ElmoError]) -> bool:
    """Whether there is a group, dataset or link at the path `name`. Raises `error` as `find_dataset` does."""
    parent, _, last = name.rpartition("/")
    group = file
    for depth, part in enumerate(parent.split("/") if parent else [], start=1):
        path = "/".join(parent.split("/")[:depth])
        group = _child(group, part, path, file.filename, error)
        if not isinstance(group, h5py.Group):
            return False
    with reading(file.filename, name, error):
        return _has_link(group, last)


def shape_of(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> tuple[int, ...] | None:
    """Return a dataset's shape; None if it has no dataspace (h5py.Empty). Raises `error` if the file is damaged."""
    with reading(dataset.file.filename, name, error):
        shape: tuple[int, ...] | None = dataset.shape
    return shape


def check_dataset(
    dataset: h5py.Dataset,
    name: str,
    error: type[ElmoError],
    types: Sequence[str] = ("float32",),
    max_bytes: int = MAX_BYTES,
) -> None:
    """Check that a dataset holds floating point values of a bounded size in its own file. Raises `error`.

    types: the types that it may have, of "float16", "float32" and "float64", in any byte order.
    max_bytes: how much memory the values may take (see `allowed_bytes`).
    """
    path = dataset.file.filename
    with reading(path, name, error):
        stored = dataset.id.get_type()
        if not any(stored in _STORED[kind] for kind in types):
            message = Errors.HDF5_DTYPE
            raise error(message.format(path=path, name=name, got=_dtype(dataset), expected=" or ".join(types)))
        check_storage(dataset, stored.get_size(), name, error, max_bytes)


def read_dataset(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> Floats:
    """Read a dataset as float32 in native byte order. Call `check_dataset` first.

    Raises `error` if the file is damaged, or if a value is NaN or infinite.
    """
    path = dataset.file.filename
    # a value too large for float32 becomes infinite, and is refused below
    with reading(path, name, error), np.errstate(over="ignore"):
        values: Floats = dataset.astype(np.float32)[...]
    n_bad = int(values.size - np.isfinite(values).sum())
    if n_bad:
        raise error(Errors.HDF5_NOT_FINITE.format(path=path, name=name, got=n_bad))
    return values


def read_string(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> str:
    """Read a dataset of shape (1,) or () that holds one UTF-8 string of variable length.

    Raises `error` if the dataset is something else, or if the file is damaged.
    """
    path = dataset.file.filename
    with reading(path, name, error):
        stored = dataset.id.get_type()
        is_string = isinstance(stored, h5py.h5t.TypeStringID) and stored.is_variable_str()
        if not is_string or dataset.shape not in ((1,), ()) or check_inside(dataset, name, error):
            got = f"{_dtype(dataset)} of shape {dataset.shape}"
            raise error(Errors.HDF5_STRING.format(path=path, name=name, got=got))
        # HDF5 allocates the length that the file states, up to 4 GiB, so that length is checked first.
        offset = dataset.id.get_offset()
        with open(path, "rb") as raw:
            raw.seek(offset or 0)
            length = int.from_bytes(raw.read(4), "little")
        file_size = dataset.file.id.get_filesize()
        if offset is None or length > file_size:
            raise error(Errors.HDF5_BEYOND.format(path=path, name=name, got=length, expected=file_size))
        values = np.atleast_1d(dataset[()])
        return bytes(values[0]).decode("utf-8")


def list_names(file: h5py.File, error: type[ElmoError]) -> list[str]:
    """Return all names at the root of a file. Raises `error` if the file is damaged."""
    try:
        return list(file)
    except _DAMAGE as exc:
        raise error(Errors.HDF5_NAMES.format(path=file.filename, reason=exc)) from exc


def root_names(file: h5py.File, limit: int = 20) -> str:
    """Return up to `limit` names at the root of a file as text for a message."""
    try:
        names = list(itertools.islice(file, limit + 1))
    except _DAMAGE:
        return "names that can't be read"
    shown = [ascii(name[:80])[1:-1] for name in names[:limit]] + ["..."] * (len(names) > limit)
    return ", ".join(shown) if shown else "nothing"


@contextmanager
def reading(path: str, name: str, error: type[ElmoError]) -> Iterator[None]:
    """Turn h5py's exceptions for damaged files inside the block into `error`, with the dataset in the message."""
    try:
        yield
    except ElmoError:
        raise
    except _DAMAGE as exc:
        raise error(Errors.HDF5_READ.format(path=path, name=name, reason=exc)) from exc


def _has_link(group: h5py.Group, part: str) -> bool:
    # `part in group` would follow a link into another file.
    return bool(group.id.links.exists(part.encode()))


def _child(group: h5py.Group, part: str, name: str, path: str, error: type[ElmoError]) -> object | None:
    with reading(path, name, error):
        if not _has_link(group, part):
            return None
        if group.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise error(Errors.HDF5_LINK.format(path=path, name=name))
        child: object = group[part]
        return child


def _wrong_kind(file: h5py.File, name: str, got: object, expected: str) -> str:
    kinds = {h5py.Group: "group", h5py.Dataset: "dataset"}
    return Errors.HDF5_KIND.format(
        path=file.filename, name=name, got=kinds.get(type(got), "named type"), expected=expected
    )


def _dtype(dataset: h5py.Dataset) -> str:
    try:
        return str(dataset.dtype)
    except _DAMAGE:
        return "a type that numpy does not have"
