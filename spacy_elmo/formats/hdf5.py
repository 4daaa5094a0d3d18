"""Reads HDF5 files that may be damaged or hostile, and writes new ones.

Sizes are checked before memory is allocated, so that a small file can't cause a large array. Nothing outside the file
is ever opened. The functions for an open file raise ElmoError; `open_hdf5` makes it the error that its caller names.
"""

import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import FILE_UNREADABLE, ElmoError, SettingsError, listed, shown
from .atomic import replacing, writing
from .paths import existing_file

Floats = npt.NDArray[np.float32]

_STORED = {
    "float16": (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE),
    "float32": (h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F32BE),
    "float64": (h5py.h5t.IEEE_F64LE, h5py.h5t.IEEE_F64BE),
}
# The exceptions of h5py and zlib for damaged files, as tests with damaged files showed. An ElmoError is a ValueError.
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, zlib.error)

# Values may take this many bytes of memory, or _ALWAYS times the size of their file. The largest published biLM takes
# 374 MB. The values of a file that is not compressed, or rounded to 8 bits and compressed, take less than four times
# the file's size.
MAX_BYTES = 2**30
VARIABLE = "SPACY_ELMO_MAX_BYTES"  # environment variable that raises the limit
_ALWAYS = 4

# Filters that HDF5 itself or h5py has, so that no file makes HDF5 load a plugin.
_PACKING = (h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_LZF)
_FILTERS = (*_PACKING, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)


@contextmanager
def open_hdf5(path: str | os.PathLike[str], expected: str, error: type[ElmoError]) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading. Raises `error` if it can't be opened, or if the block finds that it is damaged."""
    path = existing_file(path, expected, error)
    try:
        file = h5py.File(path, "r")
    except PermissionError as exc:
        raise error(FILE_UNREADABLE.format(path=path, reason=exc, expected=expected)) from exc
    except _DAMAGE as exc:
        if "unable to lock file" in str(exc):
            raise error(
                f"{path}: can't be locked for reading ({exc}). If another program is writing the file, wait until it "
                "has closed it. If the file system has no locks, set the environment variable "
                "HDF5_USE_FILE_LOCKING to FALSE."
            ) from exc
        raise error(f"{path}: not an HDF5 file, or one cut short ({exc}). Expected {expected}.") from exc
    with file:
        try:
            yield file
        except _DAMAGE as exc:
            if type(exc) is ElmoError:
                raise error(str(exc)) from exc.__cause__
            if isinstance(exc, ElmoError):
                raise
            raise error(f"{path}: can't be read ({exc}). The file is damaged: get it again.") from exc


def find(file: h5py.File, name: str) -> object | None:
    """Return what is at a path in a file; None if a part of the path is missing. Links are refused, not followed."""
    current: Any = file
    parts = name.split("/")
    for depth, part in enumerate(parts):
        if depth:
            _check_kind(file, "/".join(parts[:depth]), current, h5py.Group)
        if not current.id.links.exists(part.encode()):  # `part in current` would follow a link into another file
            return None
        if current.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise ElmoError(
                f"{file.filename}: {'/'.join(parts[: depth + 1])} is a link to another place. Expected the data "
                "itself, in this file."
            )
        current = current[part]
    found: object = current
    return found


def _check_kind(file: h5py.File, name: str, item: object, expected: type) -> None:
    if not isinstance(item, expected):
        kinds: dict[type, str] = {h5py.Group: "group", h5py.Dataset: "dataset"}
        got = kinds.get(type(item), "named type")
        raise ElmoError(f"{file.filename}: {name} is a {got}. Expected a {kinds[expected]}.")


def find_dataset(file: h5py.File, name: str) -> h5py.Dataset | None:
    """Return a dataset; None if there is nothing of this name (see `find`)."""
    found = find(file, name)
    if found is not None:
        _check_kind(file, name, found, h5py.Dataset)
    return found


def find_all(file: h5py.File, names: Iterable[str], expected: str) -> dict[str, h5py.Dataset]:
    """Return datasets by name. Raises ElmoError, with what was expected, if some are missing."""
    found = {name: find_dataset(file, name) for name in names}
    if missing := [name for name, dataset in found.items() if dataset is None]:
        raise ElmoError(
            f"{file.filename}: missing datasets: {listed(missing)}. Expected {expected}; at its root the file has "
            f"{listed([ascii(name[:80])[1:-1] for name in file]) or 'nothing'}."
        )
    return {name: dataset for name, dataset in found.items() if dataset is not None}


def allowed_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> int:
    """Return how many bytes a file's values may take: the largest of max_bytes, VARIABLE and four times its size."""
    value = os.environ.get(VARIABLE, "").strip() or "0"
    if not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise SettingsError(
            f"{VARIABLE} is {shown(value)}. Expected a whole number of bytes, such as 4000000000; or unset this "
            "variable."
        )
    allowed = max(max_bytes, int(value))
    try:
        return max(allowed, _ALWAYS * os.path.getsize(path))
    except (OSError, ValueError):  # ValueError: a NUL character
        return allowed


def check_bytes(n_bytes: int, path: str | os.PathLike[str], what: str, max_bytes: int = MAX_BYTES) -> None:
    """Raise ElmoError if values take more than `allowed_bytes`. what: would take them, for the message."""
    allowed = allowed_bytes(path, max_bytes)
    if n_bytes > allowed:
        raise ElmoError(
            f"{path}: {what} would take {n_bytes:,} bytes of memory, but the file has {os.path.getsize(path):,}. "
            f"Expected at most {allowed:,}. If you trust the file, set {VARIABLE} to {n_bytes} or more."
        )


def check_dataset(dataset: h5py.Dataset, types: Sequence[str] = ("float32",), max_bytes: int = MAX_BYTES) -> None:
    """Check type and size of a dataset (see `allowed_bytes`), and that all its values are in its file."""
    source, kind = _named(dataset), dataset.id.get_type()
    if not any(kind in _STORED[name] for name in types):
        raise ElmoError(f"{source} holds {dataset.dtype}. Expected {' or '.join(types)}.")
    chunked = _check_inside(dataset, source)
    n_bytes = math.prod(dataset.shape) * kind.get_size()
    stored = dataset.id.get_storage_size()
    complete = stored == n_bytes
    if chunked:
        plist = dataset.id.get_create_plist()
        filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
        if unknown := [code for code in filters if code not in _FILTERS]:
            raise ElmoError(
                f"{source} is stored with the filter number {unknown[0]}. Expected gzip, shuffle, fletcher32 or lzf."
            )
        n_chunks = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks))
        packed = any(code in _PACKING for code in filters)
        complete = dataset.id.get_num_chunks() == n_chunks and (packed or stored >= n_bytes)
    if not complete:
        raise ElmoError(
            f"{source} stores {stored:,} bytes for {n_bytes:,} bytes of values. The file is incomplete: get it again."
        )
    check_bytes(n_bytes, dataset.file.filename, f"the dataset {dataset.name[1:]}", max_bytes)


def _named(dataset: h5py.Dataset) -> str:
    return f"{dataset.file.filename}: the dataset {dataset.name[1:]}"


def _check_inside(dataset: h5py.Dataset, source: str) -> bool:
    """Return whether a dataset is chunked. Raises ElmoError if its values are in another file or dataset."""
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    inside = layout in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED)
    if plist.get_external_count() or not inside:
        raise ElmoError(f"{source} is virtual or stored in another file. Expected its values in this file.")
    return bool(layout == h5py.h5d.CHUNKED)


def read_dataset(dataset: h5py.Dataset) -> Floats:
    """Read a dataset as float32 in native byte order, after `check_dataset`. Raises ElmoError if one is not finite."""
    if dataset.dtype.itemsize == 2:
        values: Floats = dataset[...].astype(np.float32)  # numpy converts float16 faster than HDF5
    else:
        with np.errstate(over="ignore"):  # a value too large for float32 becomes infinite
            values = dataset.astype(np.float32)[...]
    if n_bad := int(values.size - np.isfinite(values).sum()):
        raise ElmoError(f"{_named(dataset)} holds {n_bad} values that are NaN or infinite. Expected none.")
    return values


def read_string(dataset: h5py.Dataset) -> bytes:
    """Read a dataset of shape (1,) or () that holds one string of variable length. Raises ElmoError."""
    source, stored = _named(dataset), dataset.id.get_type()
    is_string = isinstance(stored, h5py.h5t.TypeStringID) and stored.is_variable_str()
    if not is_string or dataset.shape not in ((1,), ()) or _check_inside(dataset, source):
        raise ElmoError(
            f"{source} holds {dataset.dtype} of shape {dataset.shape}. Expected one string of variable length."
        )
    # HDF5 allocates the length that the file states, up to 4 GiB, so that length is checked first.
    offset = dataset.id.get_offset()
    with open(dataset.file.filename, "rb") as raw:
        raw.seek(offset or 0)
        length = int.from_bytes(raw.read(4), "little")
    file_size = dataset.file.id.get_filesize()
    if offset is None or length > file_size:
        raise ElmoError(
            f"{source} ends at byte {length:,} of a file of {file_size:,}. The file is damaged: get it again."
        )
    return bytes(np.atleast_1d(dataset[()])[0])


# HDF5's default cache for chunks. h5py's default chunks are smaller and make files 12 % larger (measured).
_CHUNK_BYTES = 2**20
# Smaller arrays would grow if compressed, since a chunk needs an index.
_MIN_COMPRESSED_BYTES = 2**12


def in_float16(array: Any) -> Any:
    """Return an array in float16 if that has its values exactly, else as it is."""
    with np.errstate(over="ignore"):
        if np.array_equal(array[:1].astype("<f2"), array[:1]):  # else no need to convert the rest
            half = array.astype("<f2")
            return half if np.array_equal(half, array) else array
    return array


def write_hdf5(
    path: str | os.PathLike[str], arrays: Iterable[tuple[str, Any]], error: type[ElmoError], *, compress: bool
) -> None:
    """Write named numpy arrays into a new HDF5 file, atomically and synced to the disk. Raises `error`.

    compress: whether to use float16 for arrays whose values it has exactly, and the filters shuffle and gzip.
    """
    # The file is built in memory, because HDF5 can crash the process if it writes to a full disk itself.
    with h5py.File(str(path), "w", driver="core", backing_store=False) as file:
        for name, array in arrays:
            how: dict[str, Any] = {}
            if compress and array.nbytes >= _MIN_COMPRESSED_BYTES:
                # an eighth smaller than float32 (matrices of 6 bits): fewer of its bytes mix exponent and mantissa
                array = in_float16(array)
                rows = max(1, min(len(array), _CHUNK_BYTES * len(array) // array.nbytes))
                how = {"chunks": (rows, *array.shape[1:]), "shuffle": True, "compression": "gzip"}
            file.create_dataset(name, data=array, **how)
        file.flush()
        image = file.id.get_file_image()
    with replacing(path, error) as temporary, writing(path, error), open(temporary, "wb") as raw:
        raw.write(image)
        raw.flush()
        os.fsync(raw.fileno())
