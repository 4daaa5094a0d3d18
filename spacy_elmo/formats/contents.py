"""What an HDF5 file is and holds, as far as that shows without other files."""

from pathlib import Path
from typing import Any

import h5py

from ..errors import VectorsError, WeightsError
from .hdf5 import check_dataset, find, find_all, open_hdf5
from .vectors import INDEX_NAME, keyed_datasets, read_vectors
from .weights import TYPES

WEIGHTS, VECTORS_FILE, OUTPUT = "weights", "vectors", "softmax"


def is_hdf5(path: Path) -> bool:
    """Return whether a regular file has HDF5's signature."""
    return path.is_file() and h5py.is_hdf5(path)


def kind_of(path: Path) -> str:
    """Return what an HDF5 file is: OUTPUT, VECTORS_FILE or else WEIGHTS. Raises WeightsError if it can't be read."""
    with open_hdf5(path, "weights, softmax or embedded sentences of a biLM", WeightsError) as file:
        if any(find(file, name) is not None for name in ("softmax", "adaptive")):
            return OUTPUT
        names = list(file)
        if any(name == INDEX_NAME or name.isdecimal() for name in names) or keyed_datasets(file):
            return VECTORS_FILE
        # a group for each document, whose first dataset is 0, as e2e-coref writes them: VectorsError says so
        groups = [name for name in names[:1] if file.get(name, getclass=True, getlink=True) is h5py.HardLink]
        groups = [name for name in groups if file.get(name, getclass=True) is h5py.Group]
        if any(find(file, f"{name}/0") is not None for name in groups):
            return VECTORS_FILE
    return WEIGHTS


def vectors_in(path: Path) -> tuple[int, tuple[int, ...] | None, bool, bool]:
    """Return the number of embedded sentences, the shape of the first, if they are keyed, and if there is an index."""
    with open_hdf5(path, "a file of embedded sentences", VectorsError) as file:
        keyed, has_index = bool(keyed_datasets(file)), find(file, INDEX_NAME) is not None
    count, first = 0, None
    for _, array in read_vectors(path):
        first = first or array.shape
        count += 1
    return count, first, keyed, has_index


def matrices_in(path: Path) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of the matrices of a weight file whose options are unknown."""
    found: list[h5py.Dataset] = []

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and len(item.shape or ()) > 1:
            found.append(item)

    with open_hdf5(path, "the weights.hdf5 of a biLM", WeightsError) as file:
        find_all(file, ["char_embed"], "the weights of a biLM with the sizes of its options")
        file.visititems(visit)  # follows no link
        for dataset in found:
            check_dataset(dataset, TYPES)
        return [(dataset.name[1:], dataset.shape) for dataset in found]
