"""Whether an HDF5 dataset's values lie in its file, in a size that fits its shape."""

from __future__ import annotations

import itertools
import math
import zlib

import h5py

from ..errors import ElmoError, Errors

# Filters that every HDF5 library has or h5py brings along: no plugin is loaded for a file.
_FILTERS = {
    h5py.h5z.FILTER_DEFLATE: "gzip",
    h5py.h5z.FILTER_SHUFFLE: "shuffle",
    h5py.h5z.FILTER_FLETCHER32: "fletcher32",
    h5py.h5z.FILTER_LZF: "lzf",
}
# gzip makes at most 1,032 bytes of one, lzf about 90.
_MAX_RATIO = 1_040
# More and smaller chunks than this are no use to anybody, and slow to walk through.
_MAX_CHUNKS = 65_536
# A dataset may be smaller than its only chunk, but not by much.
_MIN_CHUNK_LIMIT = 2**20


def check_inside(dataset: h5py.Dataset, name: str, error: type[ElmoError]) -> bool:
    """Whether a dataset is chunked. Raises `error` for values that lie outside the file."""
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


def check_storage(dataset: h5py.Dataset, item_size: int, name: str, error: type[ElmoError]) -> None:
    """Check how a dataset of items of `item_size` bytes is stored; read nothing but compressed chunks.

    Raises `error` for values that lie outside the file, are not all there, or come out of filters that
    are unknown or make far more bytes than they take.
    """
    path = dataset.file.filename
    chunked = check_inside(dataset, name, error)
    n_bytes = math.prod(dataset.shape) * item_size
    if n_bytes == 0:
        return
    stored = dataset.id.get_storage_size()
    # Sizes in a damaged file may be anything, and contiguous values may begin anywhere.
    file_size = dataset.file.id.get_filesize()
    end = (dataset.id.get_offset() or 0) + stored if not chunked else stored
    if end > file_size:
        raise error(Errors.HDF5_BEYOND.format(path=path, name=name, got=end, expected=file_size))
    if chunked:
        _check_chunks(dataset, item_size, stored, name, error)
    elif stored != n_bytes:
        raise error(Errors.HDF5_UNALLOCATED.format(path=path, name=name, got=stored, expected=n_bytes))


def _check_chunks(dataset: h5py.Dataset, item_size: int, stored: int, name: str, error: type[ElmoError]) -> None:
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
    compressed = bool({h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_LZF}.intersection(filters))
    if dataset.id.get_num_chunks() != n_chunks or (not compressed and stored < n_bytes):
        raise error(Errors.HDF5_UNALLOCATED.format(path=path, name=name, got=stored, expected=n_bytes))
    if n_chunks * chunk_bytes > stored * _MAX_RATIO:
        raise error(Errors.HDF5_RATIO.format(path=path, name=name, got=stored, expected=n_chunks * chunk_bytes))
    if h5py.h5z.FILTER_DEFLATE in filters:
        _check_inflated(dataset, filters.index(h5py.h5z.FILTER_DEFLATE), chunk_bytes, name, error)


def _check_inflated(dataset: h5py.Dataset, position: int, chunk_bytes: int, name: str, error: type[ElmoError]) -> None:
    # HDF5 itself inflates a chunk to whatever size it claims; here it stops one byte beyond the right one.
    limit = chunk_bytes + 4  # a checksum may have been added before gzip
    for offset in itertools.product(
        *[range(0, size, step) for size, step in zip(dataset.shape, dataset.chunks, strict=True)]
    ):
        skipped, raw = dataset.id.read_direct_chunk(offset)
        if skipped & 1 << position:
            continue
        if len(zlib.decompressobj().decompress(raw, limit + 1)) > limit:
            path = dataset.file.filename
            raise error(Errors.HDF5_RATIO.format(path=path, name=name, got=len(raw), expected=limit + 1))
