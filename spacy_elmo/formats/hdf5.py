"""Reading of float32 datasets from HDF5 files that may be damaged or hostile.

Sizes are checked before memory is allocated, so that a small file can't cause a large array. Nothing outside the file
is ever opened. In all functions, `name` is the path of a dataset inside the file, and `error` is the class of the
exception to raise; its message names the file, the dataset and the problem.
"""

from __future__ import annotations

import itertools
import math
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import FILE_MISSING, FILE_NOT_REGULAR, FILE_UNREADABLE, ElmoError, SettingsError, shown
from .paths import refuse_address

_HDF5_STORAGE = "{path}: the dataset {name} is {got}. Expected its values to be stored in this file."

# Filters that HDF5 itself or h5py has, so that no file makes HDF5 load a plugin.
_FILTERS = {
    h5py.h5z.FILTER_DEFLATE: "gzip",
    h5py.h5z.FILTER_SHUFFLE: "shuffle",
    h5py.h5z.FILTER_FLETCHER32: "fletcher32",
    h5py.h5z.FILTER_LZF: "lzf",
}
# One byte of gzip decompresses to at most 1,032 bytes, one of lzf to about 90.
_MAX_RATIO = 1_040
# Values may take this many bytes of memory, or _ALWAYS times the size of their file. The largest published biLM takes
# 374 MB. The values of a file that is not compressed, or rounded to 8 bits and compressed, take less than four times
# the file's size.
MAX_BYTES = 2**30
VARIABLE = "SPACY_ELMO_MAX_BYTES"  # environment variable that raises the limit
_ALWAYS = 4
# More chunks are of no use, and slow to check one by one.
_MAX_CHUNKS = 65_536
# A chunk may be larger than its dataset, but then by at most this many bytes; so may all chunks together.
_MIN_CHUNK_LIMIT = 2**20
_PIECE = 2**16  # bytes of a chunk that are decompressed at a time


def allowed_bytes(path: str | os.PathLike[str], max_bytes: int) -> int:
    """Return how many bytes the values of a file may take: the largest of three numbers.

    They are `max_bytes`, the environment variable SPACY_ELMO_MAX_BYTES, and four times the size of the file.

    path: the file. If it can't be opened, its size counts as 0.
    max_bytes: 0 or more.

    Raises SettingsError if the variable is not a whole number.
    """
    allowed = max(max_bytes, _raised_limit())
    try:
        return max(allowed, _ALWAYS * os.path.getsize(path))
    except (OSError, ValueError):  # ValueError: a NUL character
        return allowed


def _raised_limit() -> int:
    value = os.environ.get(VARIABLE, "").strip() or "0"
    if not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise SettingsError(
            f"{VARIABLE} is {shown(value)}. Expected a whole number of bytes, such as 4000000000; or unset this "
            "variable."
        )
    return int(value)


def check_bytes(
    n_bytes: int, path: str | os.PathLike[str], name: str, error: type[ElmoError], max_bytes: int = MAX_BYTES
) -> None:
    """Raise `error` if values take more bytes than `allowed_bytes`. Nothing is read.

    n_bytes: what the values take in memory.
    path: the file.
    name: what would take them, for the message.
    error: class of the exception.
    max_bytes: see `allowed_bytes`.
    """
    allowed = allowed_bytes(path, max_bytes)
    if n_bytes > allowed:
        size = os.path.getsize(path)
        raise error(
            f"{path}: {name} would take {n_bytes:,} bytes of memory, but the file has {size:,}. Expected at most "
            f"{allowed:,}. If you trust the file, set the environment variable {VARIABLE} to {n_bytes} or more, "
            "or store the file without compression: four times its own size is always allowed."
        )


def check_inside(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> bool:
    """Return whether a dataset is chunked.

    Raises `error` if its values are outside the file: in another file, or in another dataset (virtual).
    """
    path = dataset.file.filename
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL:
        raise error(_HDF5_STORAGE.format(path=path, name=name, got="virtual"))
    if layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        raise error(_HDF5_STORAGE.format(path=path, name=name, got="of an unknown layout"))
    if plist.get_external_count():
        raise error(_HDF5_STORAGE.format(path=path, name=name, got="stored in another file"))
    return bool(layout == h5py.h5d.CHUNKED)


def check_storage(
    dataset: h5py.Dataset, item_size: int, name: str, error: type[ElmoError], max_bytes: int = MAX_BYTES
) -> None:
    """Check how a dataset is stored. Of the values, only chunks compressed by gzip are read.

    dataset: of any type and shape.
    item_size: bytes of one value.
    name: path of the dataset in the file, for messages.
    error: class of the exception.
    max_bytes: see `allowed_bytes`.

    Raises `error` if values are outside the file or incomplete, if they take too much memory, if a filter is unknown,
    or if the values decompress to more bytes than the shape states.
    """
    path = dataset.file.filename
    chunked = check_inside(dataset, name, error)
    n_bytes = math.prod(dataset.shape) * item_size
    if n_bytes == 0:
        return
    stored = dataset.id.get_storage_size()
    # A damaged file may state any size, and any beginning of contiguous values.
    file_size = dataset.file.id.get_filesize()
    end = (dataset.id.get_offset() or 0) + stored if not chunked else stored
    if end > file_size:
        raise error(
            f"{path}: the dataset {name} ends at byte {end:,} of a file of {file_size:,}. The file is damaged: "
            "get it again."
        )
    if chunked:
        _check_chunks(dataset, item_size, stored, name, error, max_bytes)
    elif stored != n_bytes:
        raise error(
            f"{path}: the dataset {name} stores {stored:,} bytes for {n_bytes:,} bytes of values. The file is "
            "incomplete: get it again."
        )


def _check_chunks(
    dataset: h5py.Dataset, item_size: int, stored: int, name: str, error: type[ElmoError], max_bytes: int
) -> None:
    path = dataset.file.filename
    n_bytes = math.prod(dataset.shape) * item_size
    plist = dataset.id.get_create_plist()
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    for code in filters:
        if code not in _FILTERS or filters.count(code) > 1:
            got = f"the filter {_FILTERS[code]} twice" if code in _FILTERS else f"the filter number {code}"
            expected = "at most one each of " + ", ".join(_FILTERS.values())
            raise error(f"{path}: the dataset {name} is stored with {got}. Expected {expected}.")
    if h5py.h5z.FILTER_DEFLATE in filters and h5py.h5z.FILTER_LZF in filters:
        got, expected = "both gzip and lzf", "one compression"
        raise error(f"{path}: the dataset {name} is stored with {got}. Expected {expected}.")
    chunk_bytes = math.prod(dataset.chunks) * item_size
    n_chunks = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    if chunk_bytes > max(n_bytes, _MIN_CHUNK_LIMIT) or n_chunks > _MAX_CHUNKS:
        expected = f"at most {_MAX_CHUNKS:,} chunks, each no larger than the dataset"
        raise error(f"{path}: the dataset {name} is stored in chunks of shape {dataset.chunks}. Expected {expected}.")
    # A chunk that is no longer than the dataset along each axis reaches over the edge by less than its own length.
    if n_chunks * chunk_bytes > max(2 ** len(dataset.shape) * n_bytes, _MIN_CHUNK_LIMIT):
        expected = f"chunks that hold no more than the dataset together, which has shape {dataset.shape}"
        raise error(f"{path}: the dataset {name} is stored in chunks of shape {dataset.chunks}. Expected {expected}.")
    compressed = bool({h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_LZF}.intersection(filters))
    if dataset.id.get_num_chunks() != n_chunks or (not compressed and stored < n_bytes):
        raise error(
            f"{path}: the dataset {name} stores {stored:,} bytes for {n_bytes:,} bytes of values. The file is "
            "incomplete: get it again."
        )
    if n_chunks * chunk_bytes > stored * _MAX_RATIO:
        raise error(
            f"{path}: the dataset {name} makes {n_chunks * chunk_bytes:,} bytes of {stored:,}. No float32 values "
            "compress that well: the file is damaged or made to fill the memory."
        )
    check_bytes(n_bytes, path, f"the dataset {name}", error, max_bytes)
    if h5py.h5z.FILTER_DEFLATE in filters:
        _check_decompressed_size(dataset, filters.index(h5py.h5z.FILTER_DEFLATE), chunk_bytes, name, error)


def _check_decompressed_size(
    dataset: h5py.Dataset, position: int, chunk_bytes: int, name: str, error: type[ElmoError]
) -> None:
    """Raise `error` if a chunk decompresses to more than `chunk_bytes`. position: of gzip among the filters."""
    # HDF5 decompresses a chunk to any size. This check stops soon after one byte too many.
    limit = chunk_bytes + 4  # fletcher32 may have added a checksum before gzip
    for offset in itertools.product(
        *[range(0, size, step) for size, step in zip(dataset.shape, dataset.chunks, strict=True)]
    ):
        skipped_filters, raw = dataset.id.read_direct_chunk(offset)
        if skipped_filters & 1 << position:
            continue
        unpacker, size = zlib.decompressobj(), 0
        for start in range(0, len(raw), _PIECE):
            size += len(unpacker.decompress(raw[start : start + _PIECE]))
            if size > limit:
                path = dataset.file.filename
                raise error(
                    f"{path}: the dataset {name} makes {size:,} bytes of {len(raw):,}. No float32 values compress "
                    "that well: the file is damaged or made to fill the memory."
                )


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
        raise error(FILE_MISSING.format(path=path, expected=expected))
    if not path.is_file():
        raise error(FILE_NOT_REGULAR.format(path=path, expected=expected))
    try:
        file = h5py.File(path, "r")
    except PermissionError as exc:
        raise error(FILE_UNREADABLE.format(path=path, reason=exc, expected=expected)) from exc
    except _DAMAGE as exc:
        message = (
            (
                "{path}: can't be locked for reading ({reason}). If another program is writing the file, wait until "
                "it has closed it. If the file system has no locks, set the environment variable "
                "HDF5_USE_FILE_LOCKING to FALSE."
            )
            if "unable to lock file" in str(exc)
            else "{path}: not an HDF5 file, or one cut short ({reason}). Expected {expected}."
        )
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
            raise error(f"{path}: the dataset {name} holds {_dtype(dataset)}. Expected {' or '.join(types)}.")
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
        raise error(f"{path}: the dataset {name} holds {n_bad} values that are NaN or infinite. Expected none.")
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
            raise error(f"{path}: the dataset {name} holds {got}. Expected one string of variable length.")
        # HDF5 allocates the length that the file states, up to 4 GiB, so that length is checked first.
        offset = dataset.id.get_offset()
        with open(path, "rb") as raw:
            raw.seek(offset or 0)
            length = int.from_bytes(raw.read(4), "little")
        file_size = dataset.file.id.get_filesize()
        if offset is None or length > file_size:
            raise error(
                f"{path}: the dataset {name} ends at byte {length:,} of a file of {file_size:,}. The file is "
                "damaged: get it again."
            )
        values = np.atleast_1d(dataset[()])
        return bytes(values[0]).decode("utf-8")


def list_names(file: h5py.File, error: type[ElmoError]) -> list[str]:
    """Return all names at the root of a file. Raises `error` if the file is damaged."""
    try:
        return list(file)
    except _DAMAGE as exc:
        raise error(
            f"{file.filename}: its list of datasets can't be read ({exc}). The file is damaged: get it again."
        ) from exc


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
        raise error(f"{path}: {name} can't be read ({exc}). The file is damaged: get it again.") from exc


def _has_link(group: h5py.Group, part: str) -> bool:
    # `part in group` would follow a link into another file.
    return bool(group.id.links.exists(part.encode()))


def _child(group: h5py.Group, part: str, name: str, path: str, error: type[ElmoError]) -> object | None:
    with reading(path, name, error):
        if not _has_link(group, part):
            return None
        if group.id.links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise error(f"{path}: {name} is a link to another place. Expected the data itself, in this file.")
        child: object = group[part]
        return child


def _wrong_kind(file: h5py.File, name: str, got: object, expected: str) -> str:
    kinds = {h5py.Group: "group", h5py.Dataset: "dataset"}
    return f"{file.filename}: {name} is a {kinds.get(type(got), 'named type')}. Expected a {expected}."


def _dtype(dataset: h5py.Dataset) -> str:
    try:
        return str(dataset.dtype)
    except _DAMAGE:
        return "a type that numpy does not have"
