"""What an HDF5 file of a stranger is and holds, found out in a process of its own (see `untrusted.ask`)."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import h5py

from ..errors import VectorsError, WeightsError
from .hdf5 import MAX_BYTES, Floats, all_there, allowed_bytes, check_dataset, find, find_dataset, open_hdf5
from .options import MAX_FILTERS, MAX_HIGHWAY, MAX_LAYERS
from .softmax import read_softmax
from .untrusted import Result, allow, ask
from .vectors import INDEX_NAME, keyed_datasets, read_vectors
from .weights import TYPES

AnyPath = str | os.PathLike[str]
WEIGHTS, VECTORS_FILE, OUTPUT = "weights", "vectors", "softmax"
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """Return whether a regular file has HDF5's signature where HDF5 looks for it: at 0, 512, 1024, 2048 ... bytes."""
    if not path.is_file():
        return False
    with suppress(OSError), path.open("rb") as file:
        size, start = path.stat().st_size, 0
        while start < size:
            file.seek(start)
            if file.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
            start = max(512, 2 * start)
    return False


def check(path: Path) -> str:
    """Check weights, a softmax or embedded sentences as far as possible without other files, and return the kind."""
    kind = ask_kind(path)
    if kind == VECTORS_FILE:
        ask_vectors(path)
    elif kind == OUTPUT:
        ask_output_layer(path)
    else:
        ask_shapes(path)
    return kind


def ask_kind(path: AnyPath) -> str:
    """Return what an HDF5 file is: OUTPUT, VECTORS_FILE or else WEIGHTS. Raises WeightsError if it can't be read."""
    kind = ask(_kind, path, {}, WeightsError, 0)[0]
    return kind if kind in (OUTPUT, VECTORS_FILE) else WEIGHTS


def _kind(path: str) -> Result:
    allow(allowed_bytes(path, 0))
    with open_hdf5(path, "weights, softmax or embedded sentences of a biLM", WeightsError) as file:
        if any(find(file, name) is not None for name in ("softmax", "adaptive")):
            return OUTPUT, {}
        names = list(file)
        if any(name == INDEX_NAME or name.isdecimal() for name in names) or keyed_datasets(file):
            return VECTORS_FILE, {}
        # a group for each document, whose first dataset is 0, as e2e-coref writes them: VectorsError says so
        groups = [name for name in names[:1] if file.get(name, getclass=True, getlink=True) is h5py.HardLink]
        groups = [name for name in groups if file.get(name, getclass=True) is h5py.Group]
        if any(find(file, f"{name}/0") is not None for name in groups):
            return VECTORS_FILE, {}
    return WEIGHTS, {}


def ask_vectors(path: AnyPath) -> tuple[int, tuple[int, ...] | None, bool, bool]:
    """Return the number of embedded sentences, the shape of the first, if they are keyed, and if there is an index."""
    n_sentences, first, keyed, has_index = ask(_vectors, path, {}, VectorsError, allowed_bytes(path, 0))[0]
    return n_sentences, None if first is None else tuple(first), keyed, has_index


def _vectors(path: str) -> Result:
    allow(allowed_bytes(path, 0))
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        keyed, index = bool(keyed_datasets(file)), find(file, INDEX_NAME) is not None
    count, first = 0, None
    for _, array in read_vectors(path):
        first = first or array.shape
        count += 1
    return (count, first, keyed, index), {}


def ask_shapes(path: AnyPath) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of the main datasets of a weight file whose options are unknown."""
    facts = ask(_shapes, path, {}, WeightsError, allowed_bytes(path, MAX_BYTES))[0]
    return [(name, tuple(shape)) for name, shape in facts]


def _shapes(path: str) -> Result:
    names = ["char_embed", "CNN_proj/W_proj", *(f"CNN/W_cnn_{i}" for i in range(MAX_FILTERS))]
    names += [f"CNN_high_{k}/W_carry" for k in range(MAX_HIGHWAY)]
    for direction in range(2):
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{{}}/LSTMCell"
        names += [f"{cell.format(k)}/{name}" for name in ("W_0", "W_P_0") for k in range(MAX_LAYERS)]
    with open_hdf5(path, "the weights.hdf5 of a biLM", WeightsError) as file:
        found = ((name, find_dataset(file, name)) for name in names)
        datasets = [(name, dataset) for name, dataset in found if dataset is not None]
        if not datasets:
            all_there(file, {"char_embed": None}, "the weights of a biLM with the sizes of its options")
        allow(sum(4 * math.prod(dataset.shape or ()) for _, dataset in datasets))
        for _, dataset in datasets:
            check_dataset(dataset, TYPES)
        return [(name, dataset.shape) for name, dataset in datasets], {}


def ask_output_layer(path: AnyPath, max_bytes: int = MAX_BYTES) -> tuple[list[int] | None, dict[str, Floats]]:
    """Read a softmax.hdf5 of a stranger, as `read_softmax` does."""
    arguments = {"max_bytes": max_bytes}
    cutoffs, arrays = ask(read_softmax, path, arguments, WeightsError, allowed_bytes(path, max_bytes))
    return cutoffs, arrays
