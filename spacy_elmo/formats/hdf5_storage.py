"""Checks that an HDF5 dataset's values are inside its file, and that their size fits its shape."""

from __future__ import annotations

import itertools
import math
import os
import zlib

import h5py

from ..errors import ElmoError, Errors, SettingsError, shown

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
        raise SettingsError(Errors.HDF5_LIMIT.format(variable=VARIABLE, got=shown(value)))
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
        message = Errors.HDF5_BYTES
        raise error(message.format(path=path, name=name, got=n_bytes, size=size, expected=allowed, variable=VARIABLE))


def check_inside(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> bool:
    """Return whether a dataset is chunked.

    Raises `error` if its values are outside the file: in another file, or in another dataset (virtual).
    """
    path = dataset.file.filename
    plist = dataset.id.get_create_plist()
    layout = plist.get_layout()
    if layout == h5py.h5d.VIRTUAL:
        raise error(Errors.HDF5_STORAGE.format(path=path, name=name, got="virtual"))
    if layout not in (h5py.h5d.COMPACT, h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED):
        raise error(Errors.HDF5_STORAGE.format(path=path, name=name, got="of an unknown layout"))
    if plist.get_external_count():
        raise error(Errors.HDF5_STORAGE.format(path=path, name=name, got="stored in another file"))
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
        raise error(Errors.HDF5_BEYOND.format(path=path, name=name, got=end, expected=file_size))
    if chunked:
        _check_chunks(dataset, item_size, stored, name, error, max_bytes)
    elif stored != n_bytes:
        raise error(Errors.HDF5_UNALLOCATED.format(path=path, name=name, got=stored, expected=n_bytes))


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
            raise error(Errors.HDF5_FILTER.format(path=path, name=name, got=got, expected=expected))
    if h5py.h5z.FILTER_DEFLATE in filters and h5py.h5z.FILTER_LZF in filters:
        got, expected = "both gzip and lzf", "one compression"
        raise error(Errors.HDF5_FILTER.format(path=path, name=name, got=got, expected=expected))
    chunk_bytes = math.prod(dataset.chunks) * item_size
    n_chunks = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    if chunk_bytes > max(n_bytes, _MIN_CHUNK_LIMIT) or n_chunks > _MAX_CHUNKS:
        expected = f"at most {_MAX_CHUNKS:,} chunks, each no larger than the dataset"
        raise error(Errors.HDF5_CHUNKS.format(path=path, name=name, got=dataset.chunks, expected=expected))
    # A chunk that is no longer than the dataset along each axis reaches over the edge by less than its own length.
    if n_chunks * chunk_bytes > max(2 ** len(dataset.shape) * n_bytes, _MIN_CHUNK_LIMIT):
        expected = f"chunks that hold no more than the dataset together, which has shape {dataset.shape}"
        raise error(Errors.HDF5_CHUNKS.format(path=path, name=name, got=dataset.chunks, expected=expected))
    compressed = bool({h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_LZF}.intersection(filters))
    if dataset.id.get_num_chunks() != n_chunks or (not compressed and stored < n_bytes):
        raise error(Errors.HDF5_UNALLOCATED.format(path=path, name=name, got=stored, expected=n_bytes))
    if n_chunks * chunk_bytes > stored * _MAX_RATIO:
        raise error(Errors.HDF5_RATIO.format(path=path, name=name, got=stored, expected=n_chunks * chunk_bytes))
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
                raise error(Errors.HDF5_RATIO.format(path=path, name=name, got=len(raw), expected=size))
