"""Reading of HDF5 files that may be damaged or hostile.

Sizes are checked before memory is allocated, so that a small file can't cause a large array. Nothing outside the file
is ever opened. In all functions, `name` is the path of a dataset inside the file, and `error` is the class of the
exception to raise; its message names the file, the dataset and the problem.
"""

from __future__ import annotations

import itertools
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import h5py
import numpy as np
import numpy.typing as npt

from ..errors import FILE_UNREADABLE, ElmoError, SettingsError, listed, shown
from .paths import existing_file

Floats = npt.NDArray[np.float32]

_STORED = {
    "float16": (h5py.h5t.IEEE_F16LE, h5py.h5t.IEEE_F16BE),
    "float32": (h5py.h5t.IEEE_F32LE, h5py.h5t.IEEE_F32BE),
    "float64": (h5py.h5t.IEEE_F64LE, h5py.h5t.IEEE_F64BE),
}
# The exceptions of h5py and zlib for damaged files, as tests with damaged files showed.
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, zlib.error)

# Values may take this many bytes of memory, or _ALWAYS times the size of their file. The largest published biLM takes
# 374 MB. The values of a file that is not compressed, or rounded to 8 bits and compressed, take less than four times
# the file's size.
MAX_BYTES = 2**30
VARIABLE = "SPACY_ELMO_MAX_BYTES"  # environment variable that raises the limit
_ALWAYS = 4

# Filters that HDF5 itself or h5py has, so that no file makes HDF5 load a plugin.
_FILTERS = {
    h5py.h5z.FILTER_DEFLATE: "gzip",
    h5py.h5z.FILTER_SHUFFLE: "shuffle",
    h5py.h5z.FILTER_FLETCHER32: "fletcher32",
    h5py.h5z.FILTER_LZF: "lzf",
}
# One byte of gzip decompresses to at most 1,032 bytes, one of lzf to about 90.
_MAX_RATIO = 1_040
# More chunks are of no use, and slow to check one by one.
_MAX_CHUNKS = 65_536
# A chunk may be larger than its dataset, but then by at most this many bytes; so may all chunks together.
_MIN_CHUNK_LIMIT = 2**20
_PIECE = 2**16  # bytes of a chunk that are decompressed at a time


@contextmanager
def open_hdf5(path: str | os.PathLike[str], expected: str, error: type[ElmoError]) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading.

    expected: what the file should be, for messages.

    Raises `error` if `path` is missing, unreadable, not a regular file or not an HDF5 file.
    """
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
        yield file


@contextmanager
def reading(path: str, name: str, error: type[ElmoError]) -> Iterator[None]:
    """Turn h5py's exceptions for damaged files inside the block into `error`, with the dataset in the message."""
    try:
        yield
    except ElmoError:
        raise
    except _DAMAGE as exc:
        raise error(f"{path}: {name} can't be read ({exc}). The file is damaged: get it again.") from exc


def list_names(file: h5py.File, error: type[ElmoError]) -> list[str]:
    """Return all names at the root of a file. Raises `error` if the file is damaged."""
    with reading(file.filename, "its list of datasets", error):
        return list(file)


def root_names(file: h5py.File, limit: int = 20) -> str:
    """Return up to `limit` names at the root of a file as text for a message."""
    try:
        names = list(itertools.islice(file, limit + 1))
    except _DAMAGE:
        return "names that can't be read"
    texts = [ascii(name[:80])[1:-1] for name in names[:limit]] + ["..."] * (len(names) > limit)
    return ", ".join(texts) if texts else "nothing"


def find_dataset(file: h5py.File, name: str, error: type[ElmoError]) -> h5py.Dataset | None:
    """Return the dataset `name`, or None if a part of its path is missing.

    Raises `error` if a part of the path is a soft or external link, or of the wrong kind (group or dataset).
    """
    current: object = file
    parts = name.split("/")
    for depth, part in enumerate(parts, start=1):
        path = "/".join(parts[:depth])
        current = _child(current, part, path, file.filename, error)
        if current is None:
            return None
        expected = h5py.Dataset if depth == len(parts) else h5py.Group
        if not isinstance(current, expected):
            kinds = {h5py.Group: "group", h5py.Dataset: "dataset"}
            got = kinds.get(type(current), "named type")
            raise error(f"{file.filename}: {path} is a {got}. Expected a {kinds[expected]}.")
    return current


def find_datasets(
    file: h5py.File, names: Iterable[str], expected: str, error: type[ElmoError]
) -> dict[str, h5py.Dataset]:
    """Return datasets by name. Raises `error` as `find_dataset` does, and if some are missing.

    expected: what the file should have, for messages.
    """
    found = {name: find_dataset(file, name, error) for name in names}
    if missing := [name for name, dataset in found.items() if dataset is None]:
        raise error(
            f"{file.filename}: missing datasets: {listed(missing)}. Expected {expected}; at its root the file has "
            f"{root_names(file)}."
        )
    return {name: dataset for name, dataset in found.items() if dataset is not None}


def exists(file: h5py.File, name: str, error: type[ElmoError]) -> bool:
    """Whether there is a group, dataset or link at the path `name`. Raises `error` as `find_dataset` does."""
    *parents, last = name.split("/")
    group: object = file
    for depth, part in enumerate(parents, start=1):
        group = _child(group, part, "/".join(parents[:depth]), file.filename, error)
        if not isinstance(group, h5py.Group):
            return False
    with reading(file.filename, name, error):
        return _has_link(group, last)


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


def shape_of(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> tuple[int, ...] | None:
    """Return a dataset's shape; None if it has no dataspace (h5py.Empty). Raises `error` if the file is damaged."""
    with reading(dataset.file.filename, name, error):
        shape: tuple[int, ...] | None = dataset.shape
    return shape


def allowed_bytes(path: str | os.PathLike[str], max_bytes: int) -> int:
    """Return how many bytes the values of a file may take: the largest of three numbers.

    They are `max_bytes`, the environment variable SPACY_ELMO_MAX_BYTES, and four times the size of the file.

    path: the file. If it can't be opened, its size counts as 0.

    Raises SettingsError if the variable is not a whole number.
    """
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


def check_bytes(
    n_bytes: int, path: str | os.PathLike[str], name: str, error: type[ElmoError], max_bytes: int = MAX_BYTES
) -> None:
    """Raise `error` if values take more than `allowed_bytes`. name: what would take them, for the message."""
    allowed = allowed_bytes(path, max_bytes)
    if n_bytes > allowed:
        size = os.path.getsize(path)
        raise error(
            f"{path}: {name} would take {n_bytes:,} bytes of memory, but the file has {size:,}. Expected at most "
            f"{allowed:,}. If you trust the file, set the environment variable {VARIABLE} to {n_bytes} or more, "
            "or store the file without compression: four times its own size is always allowed."
        )


def check_dataset(
    dataset: h5py.Dataset,
    name: str,
    error: type[ElmoError],
    types: Sequence[str] = ("float32",),
    max_bytes: int = MAX_BYTES,
) -> None:
    """Check that a dataset holds floating point values of a bounded size in its own file. Raises `error`.

    types: the types that it may have, of "float16", "float32" and "float64", in any byte order.
    max_bytes: see `allowed_bytes`.
    """
    path = dataset.file.filename
    with reading(path, name, error):
        stored = dataset.id.get_type()
        if not any(stored in _STORED[kind] for kind in types):
            raise error(f"{path}: the dataset {name} holds {_dtype(dataset)}. Expected {' or '.join(types)}.")
        check_storage(dataset, stored.get_size(), name, error, max_bytes)


def _dtype(dataset: h5py.Dataset) -> str:
    try:
        return str(dataset.dtype)
    except _DAMAGE:
        return "a type that numpy does not have"


def check_storage(
    dataset: h5py.Dataset, item_size: int, name: str, error: type[ElmoError], max_bytes: int = MAX_BYTES
) -> None:
    """Check how a dataset is stored. Of the values, only chunks compressed by gzip are read.

    dataset: of any type and shape.
    item_size: bytes of one value.
    max_bytes: see `allowed_bytes`.

    Raises `error` if values are outside the file or incomplete, if they take too much memory, if a filter is unknown,
    or if the values decompress to more bytes than the shape states.
    """
    source = f"{dataset.file.filename}: the dataset {name}"
    chunked = _check_inside(dataset, source, error)
    n_bytes = math.prod(dataset.shape) * item_size
    if n_bytes == 0:
        return
    stored = dataset.id.get_storage_size()
    # A damaged file may state any size, and any beginning of contiguous values.
    file_size = dataset.file.id.get_filesize()
    end = stored if chunked else (dataset.id.get_offset() or 0) + stored
    if end > file_size:
        raise error(f"{source} ends at byte {end:,} of a file of {file_size:,}. The file is damaged: get it again.")
    complete = stored == n_bytes
    if chunked:
        filters, chunk_bytes, n_chunks = _check_chunks(dataset, item_size, source, error)
        compressed = h5py.h5z.FILTER_DEFLATE in filters or h5py.h5z.FILTER_LZF in filters
        complete = dataset.id.get_num_chunks() == n_chunks and (compressed or stored >= n_bytes)
    if not complete:
        raise error(
            f"{source} stores {stored:,} bytes for {n_bytes:,} bytes of values. The file is incomplete: get it again."
        )
    if chunked:
        if n_chunks * chunk_bytes > stored * _MAX_RATIO:
            raise error(_bomb(source, n_chunks * chunk_bytes, stored))
        check_bytes(n_bytes, dataset.file.filename, f"the dataset {name}", error, max_bytes)
        if h5py.h5z.FILTER_DEFLATE in filters:
            _check_decompressed_size(dataset, filters.index(h5py.h5z.FILTER_DEFLATE), chunk_bytes, source, error)


def _check_inside(dataset: h5py.Dataset, source: str, error: type[ElmoError]) -> bool:
    """Return whether a dataset is chunked. Raises `error` if its values are in another file or dataset."""
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    got = "stored in another file" if plist.get_external_count() else ""
    if layout == h5py.h5d.VIRTUAL:
        got = "virtual"
    elif layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        got = "of an unknown layout"
    if got:
        raise error(f"{source} is {got}. Expected its values to be stored in this file.")
    return bool(layout == h5py.h5d.CHUNKED)


def _check_chunks(
    dataset: h5py.Dataset, item_size: int, source: str, error: type[ElmoError]
) -> tuple[list[int], int, int]:
    """Return the filters of a dataset, the bytes of a chunk and the number of chunks. Raises `error` for bad ones."""
    plist = dataset.id.get_create_plist()
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    for code in filters:
        if code not in _FILTERS or filters.count(code) > 1:
            got = f"the filter {_FILTERS[code]} twice" if code in _FILTERS else f"the filter number {code}"
            raise error(f"{source} is stored with {got}. Expected at most one each of {', '.join(_FILTERS.values())}.")
    if h5py.h5z.FILTER_DEFLATE in filters and h5py.h5z.FILTER_LZF in filters:
        raise error(f"{source} is stored with both gzip and lzf. Expected one compression.")
    shape, chunks = dataset.shape, dataset.chunks
    n_bytes, chunk_bytes = (math.prod(sizes) * item_size for sizes in (shape, chunks))
    n_chunks = math.prod(-(-size // chunk) for size, chunk in zip(shape, chunks))
    expected = ""
    if chunk_bytes > max(n_bytes, _MIN_CHUNK_LIMIT) or n_chunks > _MAX_CHUNKS:
        expected = f"at most {_MAX_CHUNKS:,} chunks, each no larger than the dataset"
    # A chunk that is no longer than the dataset along each axis reaches over the edge by less than its own length.
    elif n_chunks * chunk_bytes > max(2 ** len(shape) * n_bytes, _MIN_CHUNK_LIMIT):
        expected = f"chunks that hold no more than the dataset together, which has shape {shape}"
    if expected:
        raise error(f"{source} is stored in chunks of shape {chunks}. Expected {expected}.")
    return filters, chunk_bytes, n_chunks


def _bomb(source: str, n_bytes: int, stored: int) -> str:
    return (
        f"{source} makes {n_bytes:,} bytes of {stored:,}. No float32 values compress that well: the file is damaged "
        "or made to fill the memory."
    )


def _check_decompressed_size(
    dataset: h5py.Dataset, position: int, chunk_bytes: int, source: str, error: type[ElmoError]
) -> None:
    """Raise `error` if a chunk decompresses to more than `chunk_bytes`. position: of gzip among the filters."""
    # HDF5 decompresses a chunk to any size. This check stops soon after one byte too many.
    limit = chunk_bytes + 4  # fletcher32 may have added a checksum before gzip
    for offset in itertools.product(*[range(0, size, step) for size, step in zip(dataset.shape, dataset.chunks)]):
        skipped_filters, raw = dataset.id.read_direct_chunk(offset)
        if skipped_filters & 1 << position:
            continue
        unpacker, size = zlib.decompressobj(), 0
        for start in range(0, len(raw), _PIECE):
            size += len(unpacker.decompress(raw[start : start + _PIECE]))
            if size > limit:
                raise error(_bomb(source, size, len(raw)))


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
    source = f"{path}: the dataset {name}"
    with reading(path, name, error):
        stored = dataset.id.get_type()
        is_string = isinstance(stored, h5py.h5t.TypeStringID) and stored.is_variable_str()
        if not is_string or dataset.shape not in ((1,), ()) or _check_inside(dataset, source, error):
            got = f"{_dtype(dataset)} of shape {dataset.shape}"
            raise error(f"{source} holds {got}. Expected one string of variable length.")
        # HDF5 allocates the length that the file states, up to 4 GiB, so that length is checked first.
        offset = dataset.id.get_offset()
        with open(path, "rb") as raw:
            raw.seek(offset or 0)
            length = int.from_bytes(raw.read(4), "little")
        file_size = dataset.file.id.get_filesize()
        if offset is None or length > file_size:
            raise error(
                f"{source} ends at byte {length:,} of a file of {file_size:,}. The file is damaged: get it again."
            )
        return bytes(np.atleast_1d(dataset[()])[0]).decode("utf-8")
